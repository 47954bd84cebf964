;;; ide-bridge.el --- Be an IDE for Claude Code and its kin  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The ide_bridge authors

;; Author: The ide_bridge authors
;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: tools, convenience
;; URL: https://github.com/ide-bridge/ide-bridge
;; SPDX-License-Identifier: MIT

;; This file is not part of GNU Emacs.

;;; Commentary:

;; Claude Code in any terminal sees what you look at and select in Emacs, hears
;; which files you hand to it, reads what Flymake and Flycheck found, and lets
;; you decide its changes in Ediff or a plain diff buffer.  Or ask it from here: a
;; session needs no terminal, and shows itself in a buffer.
;;
;;   M-x ide-bridge-start    attach the current project, then type /ide in claude
;;   M-x ide-bridge-claude   or: claude in an Emacs terminal, already connected
;;   M-x ide-bridge-ask      or: ask about the region, and read the answer here
;;
;; What a session wants to do and may not do unasked is said in the echo area and
;; counted in the mode line; `ide-bridge-approve', `ide-bridge-deny' and
;; `ide-bridge-approvals' decide it, and so do the keys in the session's buffer.
;; `ide-bridge-sessions' lists all sessions, wherever they were started; they live
;; in the bridge and go on without Emacs.
;;
;; All commands are in `ide-bridge-command-map', which waits for a prefix key:
;;
;;   (global-set-key (kbd "C-c i") 'ide-bridge-command-map)
;;
;; The work is done by the bridge, a program of its own that outlives Emacs and
;; serves all editors of a workspace; this package only tells it what Emacs knows.
;; It speaks JSON-RPC with `ide-bridge attach' through `jsonrpc.el', never waits
;; for an answer, and never makes the bridge wait for you.
;;
;; What it deliberately does not have: a user interface of its own where Emacs has
;; one (Ediff, Diff mode, Dired, Flymake, project.el, the minibuffer and the terminal
;; emulators), knowledge of ports, tokens or locks, and many options.
;;
;; This file is the entry: commands, keys and the mode.  `ide-bridge-link' is the
;; conversation with the bridge; `ide-bridge-files', `ide-bridge-diagnostics' and
;; `ide-bridge-diff' are what is said there; the rest is loaded when it is used.
;;
;; Buffers that visit remote files (TRAMP) are left out: the programs at the
;; other end could not open their names.  `ide-bridge-status' tells how many.

;;; Code:

(require 'cl-lib)
(require 'ide-bridge-buffers)
(require 'ide-bridge-diagnostics)
(require 'ide-bridge-diff)
(require 'ide-bridge-files)
(require 'ide-bridge-link)
(require 'ide-bridge-options)
(require 'seq)
(require 'subr-x)

(defvar ide-bridge-mode)

(declare-function dired-get-marked-files "dired")

;; These files are loaded when they are needed.
(autoload 'ide-bridge--approval-asked "ide-bridge-approvals")
(autoload 'ide-bridge--approval-closed "ide-bridge-approvals")
(autoload 'ide-bridge--refresh-approvals "ide-bridge-approvals")
(autoload 'ide-bridge--session-event "ide-bridge-ask")
(autoload 'ide-bridge-approvals "ide-bridge-approvals" nil t)
(autoload 'ide-bridge-approve "ide-bridge-approvals" nil t)
(autoload 'ide-bridge-approve-for-session "ide-bridge-approvals" nil t)
(autoload 'ide-bridge-ask "ide-bridge-ask" nil t)
(autoload 'ide-bridge-claude "ide-bridge-terminal" nil t)
(autoload 'ide-bridge-deny "ide-bridge-approvals" nil t)
(autoload 'ide-bridge-doctor "ide-bridge-status" nil t)
(autoload 'ide-bridge-edit-approval "ide-bridge-approval-view" nil t)
(autoload 'ide-bridge-interrupt "ide-bridge-ask" nil t)
(autoload 'ide-bridge-sessions "ide-bridge-sessions" nil t)
(autoload 'ide-bridge-status "ide-bridge-status" nil t)
(autoload 'ide-bridge-stop-session "ide-bridge-ask" nil t)
(autoload 'ide-bridge-view-approval "ide-bridge-approval-view" nil t)
(autoload 'ide-bridge-view-change "ide-bridge-approval-view" nil t)


;;; Commands

;;;###autoload
(defun ide-bridge-start (&optional folder)
  "Attach the current project, or FOLDER, to its bridge.
Outside of projects, and with a prefix argument, ask for the folder."
  (interactive
   (list (or (and (not current-prefix-arg) (ide-bridge--project-folder))
             (progn (ide-bridge--refuse-remote default-directory)
                    (read-directory-name "Attach folder: " nil nil t)))))
  (let ((folder (or folder (ide-bridge--folder-here))))
    (ide-bridge--refuse-remote folder)
    (setq folder (directory-file-name (file-truename folder)))
    (if (seq-some (lambda (link) (equal folder (ide-bridge--folder link))) ide-bridge--links)
        (message "%s is attached already" (abbreviate-file-name folder))
      (setq ide-bridge--declined (delete folder ide-bridge--declined))
      (ide-bridge--attach folder)
      (unless ide-bridge-mode
        (ide-bridge-mode 1)))))

(defun ide-bridge-stop ()
  "Detach the current project.
Its bridge lives on for other editors, and for the clients that are connected."
  (interactive)
  (let* ((link (ide-bridge--link-here))
         (folder (ide-bridge--folder link)))
    (push folder ide-bridge--declined)
    (ide-bridge--detach link)
    (message "Detached %s" (abbreviate-file-name folder))))

;;;###autoload
(defun ide-bridge-send (&optional files)
  "Hand the region, or else the file, to the client as a mention.
In Dired, hand over the marked files, or else the one at point.
With a prefix argument, ask for a file.  From Lisp, FILES is a list of them."
  (interactive (list (and current-prefix-arg
                          (list (expand-file-name (read-file-name "Mention file: " nil nil t))))))
  (cond (files (mapc #'ide-bridge--mention files))
        ((derived-mode-p 'dired-mode) (mapc #'ide-bridge--mention (dired-get-marked-files)))
        ((not (ide-bridge--path (current-buffer)))
         (user-error (if (and buffer-file-name (file-remote-p buffer-file-name))
                         "Remote files are left out"
                       "This buffer visits no file")))
        ((use-region-p) (apply #'ide-bridge--mention (ide-bridge--path (current-buffer))
                               (ide-bridge--lines)))
        (t (ide-bridge--mention (ide-bridge--path (current-buffer))))))

(defun ide-bridge--lines ()
  "First and last line of the selection, from 0, without a last one left empty."
  (pcase-let ((`(,start ,end) (ide-bridge--bounds)))
    (when (and (< start end) (ide-bridge--at end (bolp)))
      (setq end (1- end)))
    (list (plist-get (ide-bridge--place start) :line) (plist-get (ide-bridge--place end) :line))))

(defun ide-bridge--mention (path &optional first last)
  "Hand PATH, or its lines FIRST to LAST, to the client."
  (ide-bridge--refuse-remote path)
  (let* ((path (file-truename path))
         (link (or (car (ide-bridge--links-for path)) (ide-bridge--link-here))))
    (apply #'ide-bridge--notify (list link) 'mentioned :path path
           (and first (list :startLine first :endLine last)))
    (message "Mentioned %s%s%s" (file-name-nondirectory (directory-file-name path))
             (cond ((null first) "")
                   ((= first last) (format ", line %d" (1+ first)))
                   (t (format ", lines %d to %d" (1+ first) (1+ last))))
             (if (ide-bridge--clients link) "" "; waits until a client connects"))))

(defun ide-bridge-sharing (policy)
  "Let the POLICY be \"full\", \"path\" or \"off\" for what is shared unasked."
  (interactive (list (completing-read
                      (format-prompt "Share unasked" (ide-bridge--sharing (ide-bridge--link-here)))
                      '("full" "path" "off") nil t nil nil
                      (ide-bridge--sharing (ide-bridge--link-here)))))
  (let ((link (ide-bridge--link-here)))
    (ide-bridge--request link 'share (list :policy policy)
                         (lambda (holds)
                           (ide-bridge--policy-is link holds)
                           (message "Shared unasked: %s%s" holds
                                    (if (equal holds policy) ""
                                      (format " (the workspace does not allow %s)" policy)))))))

(defun ide-bridge-choose-client ()
  "Choose who gets your mentions when several clients are connected."
  (interactive)
  (let ((link (ide-bridge--link-here)))
    (ide-bridge--request
     link 'status (make-hash-table)
     ;; A timer, because no answer may be waited for where messages are read.
     (lambda (status) (run-with-timer 0 nil #'ide-bridge--choose-among link
                                      (append (plist-get status :clients) nil))))))

(defun ide-bridge--choose-among (link clients)
  "Ask which of CLIENTS gets the mentions on LINK."
  (let* ((choices (cons '("all clients")
                        (mapcar (lambda (client)
                                  (cons (ide-bridge--client-name client) (plist-get client :client)))
                                clients)))
         (chosen (completing-read "Mentions go to: " choices nil t)))
    (ide-bridge--request link 'choose (list :client (cdr (assoc chosen choices)))
                         (lambda (_) (message "Mentions go to %s" chosen)))))


;;; Sessions

(cl-defmethod ide-bridge--hear (link (_method (eql 'approvalAsked)) &rest approval)
  "A session of LINK asks for APPROVAL."
  (ide-bridge--approval-asked link approval))

(cl-defmethod ide-bridge--hear (_link (_method (eql 'approvalClosed))
                                      &key approval outcome by reason &allow-other-keys)
  "An APPROVAL is decided: the OUTCOME by BY, with a REASON."
  (ide-bridge--approval-closed approval outcome by reason))

(cl-defmethod ide-bridge--hear (link (_method (eql 'sessionEvent))
                                     &key session event &allow-other-keys)
  "An EVENT has happened in SESSION of LINK."
  (ide-bridge--session-event link session event))

(defun ide-bridge--ask-for-approvals (link)
  "Find out whether something waits for an approval at the bridge of LINK.
A bridge without sessions need not load what they need only to say no."
  (ide-bridge--request
   link 'status (make-hash-table)
   (lambda (status)
     (when (seq-some (lambda (session) (< 0 (length (plist-get session :approvals))))
                     (plist-get status :sessions))
       (ide-bridge--refresh-approvals link)))))

(add-hook 'ide-bridge--ready-functions #'ide-bridge--ask-for-approvals)


;;; The mode

(defvar ide-bridge-command-map
  (let ((map (make-sparse-keymap)))
    (pcase-dolist (`(,key . ,command)
                   '(("s" . ide-bridge-send) ("\r" . ide-bridge-ask) ("l" . ide-bridge-sessions)
                     ("y" . ide-bridge-approve) ("n" . ide-bridge-deny) ("w" . ide-bridge-approvals)
                     ("x" . ide-bridge-interrupt) ("X" . ide-bridge-stop-session)
                     ("a" . ide-bridge-accept) ("r" . ide-bridge-reject)
                     ("d" . ide-bridge-show-diff) ("c" . ide-bridge-claude)
                     ("m" . ide-bridge-choose-client) ("p" . ide-bridge-sharing)
                     ("i" . ide-bridge-status) ("?" . ide-bridge-doctor)
                     ("b" . ide-bridge-start) ("q" . ide-bridge-stop)))
      (define-key map key command))
    map)
  "All commands of the package, to be bound to a prefix key of your liking.")
;;;###autoload (autoload 'ide-bridge-command-map "ide-bridge" nil t 'keymap)
(fset 'ide-bridge-command-map ide-bridge-command-map)

(defvar ide-bridge-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map [ide-bridge-shown] #'ide-bridge--explain)
    map)
  "Keymap of `ide-bridge-mode'; no key of the user's is in it.")

(defconst ide-bridge--hooks
  '((post-command-hook . ide-bridge--after-command)
    (find-file-hook . ide-bridge--after-visit)
    (after-set-visited-file-name-hook . ide-bridge--after-rename)
    (after-save-hook . ide-bridge--after-save)
    (kill-buffer-hook . ide-bridge--before-kill)
    (flycheck-after-syntax-check-hook . ide-bridge--tell-diagnostics))
  "What is looked at while the mode is on.")

;;;###autoload
(define-minor-mode ide-bridge-mode
  "Let Claude Code and its kin see what you do in Emacs.
Switched on, it attaches the current project; see also `ide-bridge-auto-start'."
  :global t
  :group 'ide-bridge
  :lighter (:eval (ide-bridge--lighter))
  (if ide-bridge-mode
      (progn (ide-bridge--listen)
             (when-let ((folder (and (null ide-bridge--links) (ide-bridge--project-folder))))
               (ide-bridge-start folder)))
    (ide-bridge--turn-deaf)
    (mapc #'ide-bridge--detach ide-bridge--links)))

(defun ide-bridge--rest (_link)
  "Switch the mode off when there is nothing left for it to do."
  (unless (or ide-bridge--links ide-bridge-auto-start (not ide-bridge-mode))
    (ide-bridge-mode -1)))

(add-hook 'ide-bridge--ended-functions #'ide-bridge--rest t)

(defun ide-bridge--listen ()
  "Begin to look at what happens in Emacs."
  (pcase-dolist (`(,hook . ,function) ide-bridge--hooks)
    (add-hook hook function))
  (add-function :after after-focus-change-function #'ide-bridge--after-focus)
  ;; Flymake has no hook for what its checkers report.
  (advice-add 'flymake--handle-report :after #'ide-bridge--tell-diagnostics))

(defun ide-bridge--turn-deaf ()
  "Look no more at what happens in Emacs."
  (pcase-dolist (`(,hook . ,function) ide-bridge--hooks)
    (remove-hook hook function))
  (remove-function after-focus-change-function #'ide-bridge--after-focus)
  (advice-remove 'flymake--handle-report #'ide-bridge--tell-diagnostics))

(defun ide-bridge--lighter ()
  "Text for the mode line: clients, a policy that is not \"full\", diffs."
  (let ((clients (mapcan (lambda (link) (copy-sequence (ide-bridge--clients link)))
                         ide-bridge--links))
        (diffs (length ide-bridge--diffs))
        (approvals (length (bound-and-true-p ide-bridge--approvals)))
        (withheld (remove "full" (delq nil (mapcar #'ide-bridge--sharing ide-bridge--links)))))
    (list (propertize (format " Bridge:%s" (if ide-bridge--links (length clients) "off"))
                      'help-echo (if clients (mapconcat #'ide-bridge--client-name clients "\n")
                                   "No client is connected"))
          (if withheld (format "(%s)" (car withheld)) "")
          (pcase diffs
            (0 "")
            (_ (propertize (format " %d diff%s" diffs (if (= diffs 1) "" "s"))
                           'face 'warning 'help-echo "Proposed changes wait for your decision")))
          (pcase approvals
            (0 "")
            (_ (propertize (format " %d approval%s" approvals (if (= approvals 1) "" "s"))
                           'face 'warning 'help-echo "Sessions wait for your approval"))))))

(provide 'ide-bridge)
;;; ide-bridge.el ends here
