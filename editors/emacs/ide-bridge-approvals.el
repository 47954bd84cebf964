;;; ide-bridge-approvals.el --- What sessions want to do, allowed or denied in Emacs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The ide_bridge authors

;; Author: The ide_bridge authors
;; URL: https://github.com/ide-bridge/ide-bridge
;; SPDX-License-Identifier: MIT

;; This file is not part of GNU Emacs.

;;; Commentary:

;; An approval is asked for by a session and stays open until somebody allows or
;; denies it, here or elsewhere; the first answer holds.  That one is open is said
;; in the echo area and in the mode line.  Nothing waits for the user, and nothing
;; is asked of him before he has chosen to decide.
;;
;; It does not know what the sessions say, or how their buffers look.

;;; Code:

(require 'ide-bridge-buffers)
(require 'ide-bridge-link)
(require 'seq)
(require 'subr-x)
(require 'tabulated-list)

(autoload 'ide-bridge--answer-question "ide-bridge-approval-view")
(autoload 'ide-bridge-edit-approval "ide-bridge-approval-view" nil t)
(autoload 'ide-bridge-view-approval "ide-bridge-approval-view" nil t)
(autoload 'ide-bridge-view-change "ide-bridge-approval-view" nil t)

(defconst ide-bridge--moment 0.5
  "Seconds for which a new approval is not allowed by a single key.
The key was pressed for what was there before.")

(defvar ide-bridge--approvals nil
  "The open approvals, oldest first.
Each is a property list as the bridge has sent it, with :link and :came.")

(defconst ide-bridge--approvals-seconds 3
  "So often it is asked whether the open approvals are open in truth.
A bridge that was killed and has come back tells nobody that it lost them.")

(defvar ide-bridge--approvals-timer nil
  "The timer that will ask whether the open approvals are open in truth.")

(defvar ide-bridge--deciding nil
  "The names of the approvals that were decided here a moment ago.")

(defvar-local ide-bridge--approval nil
  "In a buffer that shows an approval: its name.")

(defun ide-bridge--approval-with (id)
  "The open approval that has the name ID, or nil."
  (and id (seq-find (lambda (approval) (equal id (plist-get approval :id))) ide-bridge--approvals)))

(defun ide-bridge--approvals-of (session)
  "The open approvals of SESSION."
  (seq-filter (lambda (approval) (equal session (plist-get approval :session)))
              ide-bridge--approvals))

(defun ide-bridge--approval-title (approval &optional width)
  "What APPROVAL is about, on one line of at most WIDTH columns."
  (ide-bridge--one-line (or (plist-get approval :title) (plist-get approval :tool)) width))


;;; What the bridge tells

(defun ide-bridge--approval-asked (link approval)
  "Take note that a session of LINK asks for APPROVAL."
  (unless (ide-bridge--approval-with (plist-get approval :id))
    (setq ide-bridge--approvals
          (append ide-bridge--approvals
                  (list (append (list :link link :came (float-time)) approval))))
    (ide-bridge--approvals-changed)
    (message "%s" (propertize
                   (format "Claude asks: %s  (M-x ide-bridge-approve or ide-bridge-deny)"
                           (ide-bridge--approval-title approval 60))
                   'face 'warning))))

(defun ide-bridge--approval-closed (id outcome by reason)
  "The approval ID is not open any more: the OUTCOME by BY, with a REASON."
  (when-let ((approval (ide-bridge--approval-with id)))
    (setq ide-bridge--approvals (remq approval ide-bridge--approvals))
    (ide-bridge--approvals-changed)
    (if (member id ide-bridge--deciding)
        (setq ide-bridge--deciding (delete id ide-bridge--deciding))
      (message "%s %s" (ide-bridge--approval-title approval 60)
               (ide-bridge--outcome outcome by reason)))))

(defun ide-bridge--outcome (outcome by reason)
  "In words, the OUTCOME of an approval, by BY with a REASON."
  (concat (pcase outcome ("allowed" "was allowed") ("denied" "was denied") ("expired" "was too late")
                 ("withdrawn" "is not wanted any more") (_ (format "is %s" outcome)))
          (if (or (string-empty-p (or by "")) (member outcome '("expired" "withdrawn"))) ""
            (format " by %s" (ide-bridge--one-line by 40)))
          (if (string-empty-p (or reason "")) "" (format ": %s" (ide-bridge--one-line reason 200)))))

(defun ide-bridge--refresh-approvals (link)
  "Find out which approvals of LINK are open in truth."
  (ide-bridge--request
   link 'approvals (make-hash-table)
   (lambda (open)
     (let ((ids (mapcar (lambda (approval) (plist-get approval :id)) open)))
       (dolist (known ide-bridge--approvals)
         (when (and (eq link (plist-get known :link)) (not (member (plist-get known :id) ids)))
           (ide-bridge--approval-closed (plist-get known :id) "withdrawn" "" "")))
       (seq-do (lambda (approval) (ide-bridge--approval-asked link approval)) open)))
   #'ignore))

(defun ide-bridge--look-after-approvals ()
  "Find out which approvals are open in truth, for as long as there are some."
  (setq ide-bridge--approvals-timer nil)
  (mapc #'ide-bridge--refresh-approvals
        (seq-uniq (mapcar (lambda (approval) (plist-get approval :link)) ide-bridge--approvals)))
  (ide-bridge--approvals-changed))

(defun ide-bridge--forget-approvals (link)
  "Forget the approvals of LINK, which has ended."
  (setq ide-bridge--approvals
        (seq-remove (lambda (approval) (eq link (plist-get approval :link))) ide-bridge--approvals))
  (ide-bridge--approvals-changed))

(add-hook 'ide-bridge--ended-functions #'ide-bridge--forget-approvals)


;;; Deciding

(defun ide-bridge--this-approval (prompt)
  "The approval that a command means: the one looked at, or one chosen with PROMPT."
  (let ((id (or (and (derived-mode-p 'ide-bridge-approvals-mode) (tabulated-list-get-id))
                ide-bridge--approval
                (get-text-property (point) 'ide-bridge-approval))))
    (cond ((ide-bridge--approval-with id))
          (ide-bridge--approval (user-error "This has been decided"))
          ((null ide-bridge--approvals) (user-error "Nothing waits for your approval"))
          ((ide-bridge--only-approval))
          (t (ide-bridge--choose-approval prompt)))))

(defun ide-bridge--only-approval ()
  "The one open approval of the session that is looked at, if it has no other."
  (let ((open (and (bound-and-true-p ide-bridge--session)
                   (ide-bridge--approvals-of (bound-and-true-p ide-bridge--session)))))
    (and open (null (cdr open)) (car open))))

(defun ide-bridge--choose-approval (prompt)
  "Let the user choose an open approval with PROMPT."
  (let* ((choices (mapcar (lambda (approval)
                            (cons (format "%s  [%s]" (ide-bridge--approval-title approval 100)
                                          (plist-get approval :id))
                                  approval))
                          ide-bridge--approvals))
         (annotate (lambda (name) (ide-bridge--annotation (cdr (assoc name choices)))))
         (table (lambda (text fits action)
                  (if (eq action 'metadata)
                      `(metadata (category . ide-bridge-approval)
                                 (annotation-function . ,annotate)
                                 (display-sort-function . identity))
                    (complete-with-action action choices text fits))))
         (shown (format-prompt (string-remove-suffix ": " prompt) (caar choices)))
         (chosen (completing-read shown table nil t nil nil (caar choices))))
    (or (ide-bridge--approval-with (plist-get (cdr (assoc chosen choices)) :id))
        (user-error "This has been decided meanwhile"))))

(defun ide-bridge--annotation (approval)
  "What else there is to know of APPROVAL, for a list of them."
  (format "  %s, %s%s" (ide-bridge--short (plist-get approval :session))
          (ide-bridge--age (plist-get approval :asked))
          (if-let ((why (or (plist-get approval :reason) (plist-get approval :description))))
              (format ", %s" (ide-bridge--one-line why 60))
            "")))

(defun ide-bridge--short (session)
  "The beginning of the id SESSION, enough for a person."
  (substring session 0 (min 8 (length session))))

(defun ide-bridge--age (time)
  "How long ago TIME was, in one word."
  (let ((seconds (max 0 (- (float-time) (or time (float-time))))))
    (cond ((< seconds 60) (format "%ds" seconds))
          ((< seconds 3600) (format "%dm" (/ seconds 60)))
          ((< seconds 86400) (format "%dh" (/ seconds 3600)))
          (t (format "%dd" (/ seconds 86400))))))

(defun ide-bridge--decide-approval (approval behavior &rest params)
  "Let BEHAVIOR, \"allow\" or \"deny\", with PARAMS be the answer to APPROVAL."
  (let ((id (plist-get approval :id))
        (link (plist-get approval :link)))
    (push id ide-bridge--deciding)
    (ide-bridge--request
     link 'decide (append (list :approval id :behavior behavior) params)
     (lambda (answer)
       (ide-bridge--approval-closed id (plist-get answer :outcome) (plist-get answer :by) "")
       (when-let ((edited (get-buffer (ide-bridge--edit-name id))))
         (kill-buffer edited))
       (message "%s: %s" (if (equal behavior "allow") "Allowed" "Denied")
                (ide-bridge--approval-title approval 60)))
     (lambda (text _code)
       (setq ide-bridge--deciding (delete id ide-bridge--deciding))
       (message "%s" (propertize (format "ide-bridge: %s" text) 'face 'warning))
       (ide-bridge--refresh-approvals link)))))

(defun ide-bridge--edit-name (id)
  "The name of the buffer in which the input of the approval ID is edited."
  (format "*ide-bridge edit %s*" id))

(defun ide-bridge--approval-to-allow (prompt)
  "The approval that a command of the user's means, or one chosen with PROMPT.
One that has only just come is not allowed: he cannot have seen it yet."
  (let ((approval (ide-bridge--this-approval prompt)))
    (when (< (- (float-time) (plist-get approval :came)) ide-bridge--moment)
      (user-error "This was asked just now; look at it first"))
    approval))

;;;###autoload
(defun ide-bridge-approve (approval &optional for-session)
  "Allow APPROVAL, what a session wants to do, or answer what it asks.
FOR-SESSION, the prefix argument, allows the like of it for the rest of
the session, too."
  (interactive (list (ide-bridge--approval-to-allow "Allow: ") current-prefix-arg))
  (pcase (plist-get approval :kind)
    ("question" (ide-bridge--answer-question approval))
    ((and "plan" (guard (not (or ide-bridge--approval (bound-and-true-p ide-bridge--session)))))
     (ide-bridge-view-approval approval))
    (_ (apply #'ide-bridge--decide-approval approval "allow" (and for-session '(:forSession t))))))

;;;###autoload
(defun ide-bridge-approve-for-session (approval)
  "Allow APPROVAL and the like of it for the rest of its session."
  (interactive (list (ide-bridge--approval-to-allow "Allow for the session: ")))
  (ide-bridge-approve approval t))

;;;###autoload
(defun ide-bridge-deny (approval reason)
  "Deny APPROVAL, what a session wants to do, and tell it the REASON."
  (interactive
   (let ((approval (ide-bridge--this-approval "Deny: ")))
     (list approval
           (read-string (format "Deny %s, because: " (ide-bridge--approval-title approval 50))))))
  (ide-bridge--decide-approval approval "deny" :reason reason))


;;; The list

(defvar ide-bridge-approval-keys-map
  (let ((map (make-sparse-keymap)))
    (define-key map "a" #'ide-bridge-approve)
    (define-key map "A" #'ide-bridge-approve-for-session)
    (define-key map "d" #'ide-bridge-deny)
    (define-key map "e" #'ide-bridge-edit-approval)
    (define-key map "=" #'ide-bridge-view-change)
    map)
  "The keys that decide an approval, wherever one is shown.")

(defvar ide-bridge-approvals-mode-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map (make-composed-keymap ide-bridge-approval-keys-map
                                                 tabulated-list-mode-map))
    (define-key map (kbd "RET") #'ide-bridge-view-approval)
    map)
  "Keymap of the list of approvals.")

(define-derived-mode ide-bridge-approvals-mode tabulated-list-mode "Approvals"
  "The approvals that are open, in all sessions of the attached projects.

\\{ide-bridge-approvals-mode-map}"
  (setq tabulated-list-format [("Age" 5 nil) ("Session" 9 t) ("What it wants to do" 0 t)]
        tabulated-list-padding 1
        tabulated-list-entries #'ide-bridge--approval-rows)
  (tabulated-list-init-header))

(defun ide-bridge--approval-rows ()
  "The open approvals as rows of a table."
  (mapcar (lambda (approval)
            (list (plist-get approval :id)
                  (vector (ide-bridge--age (plist-get approval :asked))
                          (ide-bridge--short (plist-get approval :session))
                          (ide-bridge--approval-title approval))))
          ide-bridge--approvals))

(defun ide-bridge--approvals-changed ()
  "Show how many approvals are open now."
  (when-let ((buffer (get-buffer "*ide-bridge approvals*")))
    (with-current-buffer buffer
      (when (derived-mode-p 'ide-bridge-approvals-mode)
        (tabulated-list-print t))))
  (when (and ide-bridge--approvals (not ide-bridge--approvals-timer))
    (setq ide-bridge--approvals-timer
          (run-with-timer ide-bridge--approvals-seconds nil #'ide-bridge--look-after-approvals)))
  (force-mode-line-update t))

;;;###autoload
(defun ide-bridge-approvals ()
  "List what the sessions want to do and may not do yet."
  (interactive)
  (with-current-buffer (get-buffer-create "*ide-bridge approvals*")
    (ide-bridge-approvals-mode)
    (tabulated-list-print)
    (pop-to-buffer (current-buffer)))
  (mapc #'ide-bridge--refresh-approvals ide-bridge--links)
  (unless ide-bridge--approvals
    (message "Nothing waits for your approval")))

(provide 'ide-bridge-approvals)
;;; ide-bridge-approvals.el ends here
