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
;; you decide its changes in Ediff or a plain diff buffer.
;;
;;   M-x ide-bridge-start    attach the current project, then type /ide in claude
;;   M-x ide-bridge-claude   or: claude in an Emacs terminal, already connected
;;
;; All commands are in `ide-bridge-command-map', which waits for a prefix key:
;;
;;   (global-set-key (kbd "C-c i") 'ide-bridge-command-map)
;;
;; The work is done by the bridge, a program of its own that outlives Emacs and
;; serves all editors of a workspace; this file only tells it what Emacs knows.
;; It speaks JSON-RPC with `ide-bridge attach' through `jsonrpc.el', never waits
;; for an answer, and never makes the bridge wait for you.
;;
;; What it deliberately does not have: a user interface of its own (Ediff, Diff
;; mode, Dired, Flymake, project.el and the terminal emulators are there already),
;; knowledge of ports, tokens or locks, and many options.
;;
;; Buffers that visit remote files (TRAMP) are left out: the programs at the
;; other end could not open their names.  `ide-bridge-status' tells how many.

;;; Code:

(require 'cl-lib)
(require 'jsonrpc)
(require 'project)
(require 'seq)
(require 'subr-x)

(defvar diff-font-lock-syntax)
(defvar diff-refine)
(defvar ediff-after-quit-hook-internal)
(defvar ediff-mode-map)
(defvar ediff-window-setup-function)
(defvar flycheck-current-errors)
(defvar flycheck-highlighting-mode)
(defvar flymake-list-only-diagnostics)
(defvar flymake-timer)
(defvar ide-bridge-mode)
(defvar term-escape-char)
(defvar vterm-shell)

(declare-function dired-get-marked-files "dired")
(declare-function eat-make "ext:eat")
(declare-function ediff-really-quit "ediff-util")
(declare-function ediff-setup-windows-default "ediff-wind")
(declare-function evil-visual-range "ext:evil-states")
(declare-function evil-visual-state-p "ext:evil-states")
(declare-function flycheck-deferred-check-p "ext:flycheck")
(declare-function flycheck-error-checker "ext:flycheck")
(declare-function flycheck-error-filename "ext:flycheck")
(declare-function flycheck-error-id "ext:flycheck")
(declare-function flycheck-error-level "ext:flycheck")
(declare-function flycheck-error-level-severity "ext:flycheck")
(declare-function flycheck-error-message "ext:flycheck")
(declare-function flycheck-error-region-for-mode "ext:flycheck")
(declare-function flycheck-running-p "ext:flycheck")
(declare-function flymake-diagnostic-backend "flymake")
(declare-function flymake-diagnostic-beg "flymake")
(declare-function flymake-diagnostic-end "flymake")
(declare-function flymake-diagnostic-text "flymake")
(declare-function flymake-diagnostic-type "flymake")
(declare-function flymake-diagnostics "flymake")
(declare-function flymake-reporting-backends "flymake")
(declare-function flymake-running-backends "flymake")
(declare-function term-char-mode "term")
(declare-function term-mode "term")
(declare-function term-set-escape-char "term")
(declare-function vterm-mode "ext:vterm")


;;; User options

(defgroup ide-bridge nil
  "Emacs as an IDE for Claude Code and its kin."
  :group 'tools
  :prefix "ide-bridge-")

(defcustom ide-bridge-command nil
  "Program and arguments that start the bridge, a list of strings.
When nil, the program is looked for; `ide-bridge-status' shows what was found."
  :type '(choice (const :tag "Look for it" nil) (repeat string)))

(defcustom ide-bridge-auto-start nil
  "Whether `ide-bridge-mode' attaches every project whose files you look at.
When nil, it attaches the project it is switched on in; attach others
with `ide-bridge-start'."
  :type 'boolean)

(defcustom ide-bridge-diff-view 'ediff
  "How a proposed change is shown.
Changes too large for Ediff are always shown as a unified diff."
  :type '(choice (const :tag "Side by side, in Ediff" ediff)
                 (const :tag "Unified, in Diff mode" unified)))

(defcustom ide-bridge-terminal nil
  "The terminal emulator in which `ide-bridge-claude' runs the CLI.
When nil, the first of vterm, eat and term that is installed."
  :type '(choice (const :tag "The best one installed" nil)
                 (const vterm) (const eat) (const term)))

(defvar ide-bridge-clients-changed-functions nil
  "Functions called with a folder and the list of its clients when they change.
A client is a property list with :name, :version and :pid.")

(defvar ide-bridge-diff-opened-functions nil
  "Functions called with the path of a file for which a change was proposed.")

(defvar ide-bridge-diff-decided-functions nil
  "Functions called with a path and a decision, the symbol `kept' or `rejected'.")


;;; The link to a bridge

(defconst ide-bridge--file (or load-file-name buffer-file-name)
  "Where this file lies; perhaps the Python part lies next to it.")

(defvar ide-bridge--links nil
  "The live links, newest first.")

(defvar ide-bridge--declined nil
  "Folders not to be attached unasked: it failed, or you stopped it.")

(defclass ide-bridge-link (jsonrpc-process-connection)
  ((folder :initarg :folder :reader ide-bridge--folder
           :documentation "The folder that was attached, without a final slash.")
   (ready :initform nil :accessor ide-bridge--ready
          :documentation "Whether the bridge has said hello.")
   (clients :initform nil :accessor ide-bridge--clients
            :documentation "The connected clients, a list of property lists.")
   (sharing :initform nil :accessor ide-bridge--sharing
            :documentation "The policy for what is shared unasked, a string.")
   (complaint :initform nil :accessor ide-bridge--complaint
              :documentation "The last line the relay wrote to its log.")
   (stopping :initform nil :accessor ide-bridge--stopping
             :documentation "Whether the end of this link is our own wish."))
  :documentation "The conversation with the bridge of one workspace.")

(defun ide-bridge--find-command ()
  "Find the program; return a cons of the command and how it was found, or nil."
  (let ((home (expand-file-name "~/.local/bin/ide-bridge"))
        (found (executable-find "ide-bridge"))
        (source (ide-bridge--source)))
    (cond (ide-bridge-command (cons ide-bridge-command "ide-bridge-command"))
          (found (cons (list found) "the search path"))
          ((file-executable-p home) (cons (list home) "~/.local/bin"))
          (source (cons (list "env" (concat "PYTHONPATH=" source) "python3" "-P" "-m" "ide_bridge")
                        "the sources this file belongs to")))))

(defun ide-bridge--source ()
  "The folder of the Python package this file was delivered with, if any."
  (when-let ((root (and ide-bridge--file
                        (locate-dominating-file (file-truename ide-bridge--file)
                                                "ide_bridge/__main__.py"))))
    (directory-file-name (expand-file-name root))))

(defun ide-bridge--command (&rest arguments)
  "The command line of the bridge's program with ARGUMENTS."
  (append (or (car (ide-bridge--find-command))
              (user-error "No ide-bridge found; install it with `pipx install ide-bridge'"))
          arguments))

(defun ide-bridge--attach (folder)
  "Start a link for FOLDER and return it."
  (let* ((default-directory (file-name-as-directory folder))
         (name (format "ide-bridge %s" (file-name-nondirectory folder)))
         (log (make-pipe-process :name (concat name " log") :buffer nil :noquery t
                                 :sentinel #'ignore))
         (process (make-process :name name :command (ide-bridge--command "attach" folder)
                                :connection-type 'pipe :coding 'utf-8-emacs-unix
                                :noquery t :stderr log))
         (link (apply #'make-instance 'ide-bridge-link
                      :name name :process process :folder folder
                      :request-dispatcher #'ide-bridge--handle-request
                      :notification-dispatcher #'ide-bridge--handle-notification
                      :on-shutdown #'ide-bridge--ended
                      (ide-bridge--without-events))))
    (set-process-filter log (lambda (_log text) (ide-bridge--remember-complaint link text)))
    (process-put process 'ide-bridge-log log)
    ;; jsonrpc.el announces each end of a process; ours are announced in our own words.
    (add-function :around (process-sentinel process)
                  (lambda (sentinel &rest arguments)
                    (let ((inhibit-message t)) (apply sentinel arguments))))
    (push link ide-bridge--links)
    (ide-bridge--hello link)
    link))

(defun ide-bridge--without-events ()
  "Arguments that keep jsonrpc.el from pretty-printing each message for its log.
That, not the parser, makes large messages slow: seconds for a megabyte."
  (if (slot-exists-p 'jsonrpc-process-connection '-events-buffer-config)
      '(:events-buffer-config (:size 0 :format full))
    '(:events-buffer-scrollback-size 0)))

(defun ide-bridge--hello (link)
  "Say who we are on LINK, and what else must be said before anything else."
  (ide-bridge--request
   link 'hello
   (list :link 1 :editor "Emacs" :version emacs-version :pid (emacs-pid)
         :features ["selection" "diagnostics" "diff" "focus" "dirty"]
         :accepts ["contentsFile"]
         :folders (vector (ide-bridge--folder link)))
   (lambda (answer)
     (setf (ide-bridge--ready link) t)
     (ide-bridge--clients-are link (plist-get answer :clients))
     (ide-bridge--request link 'share (make-hash-table)
                          (lambda (policy) (ide-bridge--policy-is link policy)))
     (ide-bridge--forget-what-was-told)
     (ide-bridge--tell-selection)
     (message "Attached %s; type /ide in claude to connect"
              (abbreviate-file-name (ide-bridge--folder link))))
   (lambda (text)
     (message "ide-bridge: %s" text)
     (ide-bridge--detach link))))

(defun ide-bridge--request (link method params then &optional otherwise)
  "Ask LINK for METHOD with PARAMS; call THEN with the result.
If that fails, call OTHERWISE with a sentence, or else show it."
  (jsonrpc-async-request
   link method params :timeout 60
   :success-fn then
   :error-fn (jsonrpc-lambda (&key message &allow-other-keys)
               (unless (ide-bridge--stopping link)
                 (funcall (or otherwise (lambda (text) (message "ide-bridge: %s" text)))
                          message)))
   :timeout-fn (lambda () (message "ide-bridge: no answer to `%s'" method))))

(defun ide-bridge--notify (links method &rest params)
  "Tell each of LINKS, if it can hear, METHOD with PARAMS."
  (dolist (link links)
    (when (and (ide-bridge--ready link) (jsonrpc-running-p link))
      (jsonrpc-notify link method params))))

(defun ide-bridge--remember-complaint (link text)
  "Remember the last line of TEXT, which the relay of LINK wrote to its log."
  (when-let ((line (car (last (split-string text "\n" t "[ \t\r]+")))))
    (setf (ide-bridge--complaint link) line)))

(defun ide-bridge--detach (link)
  "End LINK; the bridge itself lives on."
  (setf (ide-bridge--stopping link) t)
  (let ((inhibit-message t))
    (jsonrpc-shutdown link)))

(defun ide-bridge--ended (link)
  "Clean up after LINK, whose process has ended."
  (let ((log (process-get (jsonrpc--process link) 'ide-bridge-log))
        (inhibit-message nil))
    (while (accept-process-output log 0.05))
    (delete-process log)
    (dolist (buffer (list (process-buffer log) (process-buffer (jsonrpc--process link))
                          (jsonrpc-stderr-buffer link) (jsonrpc-events-buffer link)))
      (when (buffer-live-p buffer) (kill-buffer buffer)))
    (setq ide-bridge--links (delq link ide-bridge--links))
    (mapc #'ide-bridge--close (ide-bridge--diffs-of link))
    (unless (ide-bridge--stopping link)
      (push (ide-bridge--folder link) ide-bridge--declined)
      (message "%s" (ide-bridge--obituary link)))
    (unless (or ide-bridge--links ide-bridge-auto-start (not ide-bridge-mode))
      (ide-bridge-mode -1))
    (force-mode-line-update t)))

(defun ide-bridge--obituary (link)
  "What to say about LINK, which ended without our doing."
  (if (eql 0 (process-exit-status (jsonrpc--process link)))
      (format "The bridge of %s was stopped" (abbreviate-file-name (ide-bridge--folder link)))
    (propertize (format "ide-bridge: %s" (or (ide-bridge--complaint link)
                                             "the relay ended without a word"))
                'face 'error)))

(defun ide-bridge--holds (link path)
  "Whether PATH is in the folder of LINK."
  (file-in-directory-p path (ide-bridge--folder link)))

(defun ide-bridge--links-for (path)
  "The links to tell about PATH: those with it in their folder, or else all."
  (or (seq-filter (lambda (link) (ide-bridge--holds link path)) ide-bridge--links)
      ide-bridge--links))

(defun ide-bridge--link-here ()
  "The link of the current buffer, or else the newest."
  (or (car (ide-bridge--links-for (or (ide-bridge--path (current-buffer)) default-directory)))
      (user-error "No bridge; start one with `M-x ide-bridge-start'")))


;;; Buffers, texts and places

(defconst ide-bridge--unspeakable "[\ud800-\udfff\x3fff80-\x3fffff]"
  "Characters that JSON cannot carry: lone surrogates and undecodable bytes.")

(defconst ide-bridge--languages
  '((c++ . "cpp") (fundamental . "plaintext") (js . "javascript") (sh . "shellscript")
    (text . "plaintext"))
  "Languages whose common name is not that of their major mode.")

(defvar-local ide-bridge--diff nil
  "In a buffer that shows a diff: which one.")

(defun ide-bridge--path (buffer)
  "The real name of the file that BUFFER visits; nil if others cannot open it."
  (let* ((buffer (or (buffer-base-buffer buffer) buffer))
         (name (buffer-file-name buffer)))
    (when (and name (not (file-remote-p name)))
      (let ((path (expand-file-name (or (buffer-local-value 'buffer-file-truename buffer) name))))
        (unless (string-match-p ide-bridge--unspeakable path) path)))))

(defun ide-bridge--buffers ()
  "The buffers whose files are open to others, the current one first."
  (let ((looked-at (window-buffer)))
    (seq-filter #'ide-bridge--path
                (cons looked-at (remq looked-at (seq-remove #'buffer-base-buffer (buffer-list)))))))

(defun ide-bridge--buffer (path)
  "The buffer that visits PATH, or nil."
  (when-let ((buffer (or (get-file-buffer path) (find-buffer-visiting path))))
    (and (ide-bridge--path buffer) buffer)))

(defun ide-bridge--text (start end)
  "The text from START to END as JSON can carry it."
  (replace-regexp-in-string ide-bridge--unspeakable "\ufffd"
                            (buffer-substring-no-properties start end) t t))

(defun ide-bridge--contents (buffer)
  "The whole text of BUFFER, with the line ends its file has."
  (with-current-buffer buffer
    (save-restriction
      (widen)
      (let ((text (ide-bridge--text (point-min) (point-max))))
        (pcase (coding-system-eol-type buffer-file-coding-system)
          (1 (string-replace "\n" "\r\n" text))
          (2 (string-replace "\n" "\r" text))
          (_ text))))))

(defmacro ide-bridge--at (position &rest body)
  "Go to POSITION in the whole current buffer, evaluate BODY, and return."
  (declare (indent 1) (debug t))
  `(save-excursion
     (save-restriction
       (widen)
       (let ((inhibit-field-text-motion t))
         (goto-char ,position)
         ,@body))))

(defun ide-bridge--place (position)
  "Line and column of POSITION, both from 0."
  (ide-bridge--at position
    (list :line (1- (line-number-at-pos nil t)) :column (- (point) (line-beginning-position)))))

(defun ide-bridge--position (place)
  "Where PLACE is, or the nearest position the current buffer has."
  (ide-bridge--at (point-min)
    (forward-line (plist-get place :line))
    (min (+ (point) (plist-get place :column)) (line-end-position))))

(defun ide-bridge--line-text (position)
  "The whole line at POSITION."
  (ide-bridge--at position
    (ide-bridge--text (line-beginning-position) (line-end-position))))

(defun ide-bridge--json-flag (value)
  "VALUE as a truth value of JSON."
  (if value t :json-false))

(defun ide-bridge--language ()
  "The language of the current buffer, by the name most programs have for it."
  (let ((name (replace-regexp-in-string "\\(?:-ts\\)?-mode\\'" "" (symbol-name major-mode))))
    (alist-get (intern name) ide-bridge--languages name)))

(defun ide-bridge--open-file (buffer active)
  "What others may know of BUFFER, which is ACTIVE or not."
  (with-current-buffer buffer
    (list :path (ide-bridge--path buffer)
          :active (ide-bridge--json-flag active)
          :dirty (ide-bridge--json-flag (buffer-modified-p))
          :language (ide-bridge--language)
          :lines (ide-bridge--at (point-min) (count-lines (point-min) (point-max))))))

(defun ide-bridge--bounds ()
  "Where the selection of the current buffer begins and ends, as a list."
  (cond ((and (fboundp 'evil-visual-state-p) (evil-visual-state-p))
         (seq-take (evil-visual-range) 2))
        ((use-region-p) (list (region-beginning) (region-end)))
        (t (let* ((window (get-buffer-window nil t))
                  (point (if window (window-point window) (point))))
             (list point point)))))

(defun ide-bridge--selection (buffer)
  "What is selected in BUFFER."
  (with-current-buffer buffer
    (pcase-let ((`(,start ,end) (ide-bridge--bounds)))
      (list :path (ide-bridge--path buffer)
            :text (ide-bridge--at start (ide-bridge--text start end))
            :start (ide-bridge--place start)
            :end (ide-bridge--place end)
            :startLineText (ide-bridge--line-text start)
            :endLineText (ide-bridge--line-text end)))))


;;; What the bridge asks

(defun ide-bridge--handle-request (link method params)
  "Answer the bridge at the other end of LINK, who asks METHOD with PARAMS.
Nothing in here may wait for a person, so whatever would ask one fails."
  (condition-case failure
      (let ((inhibit-interaction t)
            (enable-local-variables (and enable-local-variables :safe))
            (large-file-warning-threshold nil)
            (query-about-changed-file nil)
            (vc-follow-symlinks t))
        (apply #'ide-bridge--answer link method params))
    (jsonrpc-error (signal (car failure) (cdr failure)))
    (inhibited-interaction
     (jsonrpc-error :code -32603 :message "Emacs would have to ask the user first."))
    (error
     (jsonrpc-error :code -32603 :message (error-message-string failure)))))

(cl-defgeneric ide-bridge--answer (link method &rest params)
  "The answer to METHOD with PARAMS, a property list, asked on LINK.")

(cl-defmethod ide-bridge--answer (_link method &rest _params)
  "There is no such METHOD."
  (jsonrpc-error :code -32601 :message (format "Emacs knows no request `%s'." method)))

(cl-defmethod ide-bridge--answer (_link (_method (eql 'openFiles)) &rest _params)
  "The files that are open."
  (let ((buffers (ide-bridge--buffers)))
    (vconcat (seq-map (lambda (buffer) (ide-bridge--open-file buffer (eq buffer (car buffers))))
                      buffers))))

(cl-defmethod ide-bridge--answer (_link (_method (eql 'currentFile)) &rest _params)
  "The file looked at, or looked at last."
  (when-let ((buffer (car (ide-bridge--buffers))))
    (ide-bridge--open-file buffer t)))

(cl-defmethod ide-bridge--answer (_link (_method (eql 'selection)) &rest _params)
  "What is selected in the current file."
  (when-let ((buffer (car (ide-bridge--buffers))))
    (ide-bridge--selection buffer)))

(cl-defmethod ide-bridge--answer (_link (_method (eql 'openFile))
                                        &key path start end focus &allow-other-keys)
  "Visit PATH at START, or select START to END; show it unless FOCUS is false."
  (let ((buffer (find-file-noselect path t)))
    (if (eq focus :json-false)
        (ide-bridge--go-to buffer start nil)
      (pop-to-buffer buffer (ide-bridge--display-action))
      (ide-bridge--go-to buffer start end)
      (ide-bridge--tell-selection)))
  (make-hash-table))

(cl-defmethod ide-bridge--answer (_link (_method (eql 'readBuffer)) &key path &allow-other-keys)
  "The text of the buffer that visits PATH."
  (when-let ((buffer (ide-bridge--buffer path)))
    (list :text (ide-bridge--contents buffer)
          :dirty (ide-bridge--json-flag (buffer-modified-p buffer)))))

(cl-defmethod ide-bridge--answer (_link (_method (eql 'saveFile)) &key path &allow-other-keys)
  "Save the buffer that visits PATH."
  (let ((buffer (ide-bridge--buffer path)))
    (when (and buffer (buffer-modified-p buffer))
      (unless (verify-visited-file-modtime buffer)
        (error "The file has changed on disk; the user must decide what to save"))
      (with-current-buffer buffer (save-buffer)))
    (list :saved (ide-bridge--json-flag (and buffer (not (buffer-modified-p buffer)))))))

(cl-defmethod ide-bridge--answer (_link (_method (eql 'closeFile)) &key path &allow-other-keys)
  "Kill the buffer that visits PATH, unless that would lose something."
  (let ((buffer (ide-bridge--buffer path)))
    (list :closed (ide-bridge--json-flag
                   (and buffer (not (buffer-modified-p buffer)) (kill-buffer buffer))))))

(cl-defmethod ide-bridge--answer (_link (_method (eql 'diagnostics))
                                        &key path &allow-other-keys)
  "What the checkers found in the file PATH, or in all files."
  (vconcat (if path (delq nil (list (ide-bridge--problems-of path)))
             (ide-bridge--all-problems))))

(cl-defmethod ide-bridge--answer (link (_method (eql 'showDiff))
                                       &key diff path title contents contentsFile
                                       &allow-other-keys)
  "Offer on LINK to change PATH to CONTENTS, or to those of CONTENTSFILE.
DIFF is the number of this change, TITLE the name the client gave it."
  (ide-bridge--offer (ide-bridge--make-diff :link link :id diff :path path :title title
                                            :contents contents :file contentsFile))
  (make-hash-table))

(cl-defmethod ide-bridge--answer (link (_method (eql 'closeDiff)) &key diff &allow-other-keys)
  "Take DIFF of LINK off the screen; it was decided elsewhere."
  (when-let ((known (ide-bridge--diff-with link diff)))
    (ide-bridge--close known))
  (make-hash-table))

(defun ide-bridge--display-action ()
  "How to show a file: not in place of a terminal, nor in one more window."
  (if (ide-bridge--path (window-buffer))
      '((display-buffer-reuse-window display-buffer-same-window) (reusable-frames . visible))
    '(nil (reusable-frames . visible) (inhibit-same-window . t))))

(defun ide-bridge--go-to (buffer start end)
  "Put point of BUFFER at START, and select up to END if it is another place.
A buffer whose window the user looks at is left alone unless it is selected."
  (with-current-buffer buffer
    (when (and start (or (eq buffer (window-buffer)) (not (get-buffer-window buffer t))))
      (let ((position (ide-bridge--position start)))
        (unless (<= (point-min) position (point-max)) (widen))
        (deactivate-mark)
        (goto-char position)
        (when (and end (not (equal start end)))
          (push-mark position t t)
          (goto-char (ide-bridge--position end)))))))


;;; What the bridge tells

(defun ide-bridge--handle-notification (link method params)
  "Take note of METHOD with PARAMS, told on LINK."
  ;; An error in a process filter would make Emacs pause for two seconds.
  (with-demoted-errors "ide-bridge: %S"
    (pcase method
      ('clientsChanged (ide-bridge--clients-are link (plist-get params :clients)))
      ('fileChanged (ide-bridge--reload (plist-get params :path)))
      ('message (ide-bridge--say (plist-get params :level) (plist-get params :text))))))

(defun ide-bridge--clients-are (link clients)
  "Remember the CLIENTS of LINK, a vector."
  (setf (ide-bridge--clients link) (append clients nil))
  (run-hook-with-args 'ide-bridge-clients-changed-functions
                      (ide-bridge--folder link) (ide-bridge--clients link))
  (force-mode-line-update t))

(defun ide-bridge--policy-is (link policy)
  "Remember the POLICY of LINK for what is shared unasked."
  (setf (ide-bridge--sharing link) policy)
  (force-mode-line-update t))

(defun ide-bridge--say (level text)
  "Show TEXT with the gravity of LEVEL."
  (message "%s" (propertize (format "ide-bridge: %s" text)
                            'face (pcase level ("error" 'error) ("warning" 'warning) (_ 'default)))))

(defvar-local ide-bridge--warned nil
  "The time stamp of the file version that the user was warned about.")

(defun ide-bridge--reload (path)
  "Show what is in PATH now that a client has written it, if nothing gets lost."
  (when-let ((buffer (ide-bridge--buffer path)))
    (with-current-buffer buffer
      (cond ((verify-visited-file-modtime buffer))
            ((not (file-exists-p path)))
            ((buffer-modified-p) (ide-bridge--warn path))
            (t (let ((inhibit-interaction t)
                     (inhibit-message t)
                     (revert-buffer-with-fine-grain-max-seconds 0.5))
                 (revert-buffer-with-fine-grain t t)))))))

(defun ide-bridge--warn (path)
  "Tell the user, once for each version, that PATH is another one on disk now."
  (let ((version (file-attribute-modification-time (file-attributes path))))
    (unless (equal version ide-bridge--warned)
      (setq ide-bridge--warned version)
      (ide-bridge--say "warning"
                       (format "%s changed on disk under your unsaved changes; \
M-x ediff-current-file compares them" (file-name-nondirectory path))))))


;;; What Emacs tells

(defvar ide-bridge--told nil
  "The selection that was told last, in a form that is quick to compare.")

(defvar ide-bridge--focused nil
  "The buffer of which it was told last that it has the focus.")

(defvar-local ide-bridge--known-as nil
  "The name by which the bridge knows the file of this buffer.")

(defun ide-bridge--forget-what-was-told ()
  "Tell focus and selection again: there is somebody new to hear."
  (setq ide-bridge--told nil
        ide-bridge--focused nil))

(defun ide-bridge--tell-file (event buffer)
  "Tell that EVENT happened to the file of BUFFER."
  (when-let ((path (and ide-bridge--links (ide-bridge--path buffer))))
    (ide-bridge--notify (ide-bridge--links-for path) event :path path)))

(defun ide-bridge--tell-selection ()
  "Tell what is selected, if that is news; in other windows than files' nothing is."
  (let ((buffer (window-buffer)))
    (when (and ide-bridge--links (ide-bridge--path buffer))
      (with-current-buffer buffer
        (ide-bridge--tell-focus buffer)
        (let ((now (list buffer (ide-bridge--bounds) (buffer-chars-modified-tick))))
          (unless (equal now ide-bridge--told)
            (setq ide-bridge--told now)
            (apply #'ide-bridge--notify (ide-bridge--links-for (ide-bridge--path buffer))
                   'selectionChanged (ide-bridge--selection buffer))))))))

(defun ide-bridge--tell-focus (buffer)
  "Tell that BUFFER has the focus, if that is news."
  (unless (eq buffer ide-bridge--focused)
    (setq ide-bridge--focused buffer)
    (ide-bridge--tell-file 'fileFocused buffer)))

(defun ide-bridge--after-command ()
  "Look at what the last command has changed."
  ;; A function that fails in this hook is taken out of it by Emacs.
  (with-demoted-errors "ide-bridge: %S"
    (when (and ide-bridge-auto-start (not (eq (window-buffer) ide-bridge--focused)))
      (ide-bridge--attach-unasked))
    (ide-bridge--tell-selection)))

(defun ide-bridge--after-focus ()
  "Tell that Emacs has the focus now."
  (when (eq t (frame-focus-state))
    (setq ide-bridge--focused nil)
    (ide-bridge--tell-selection)))

(defun ide-bridge--after-visit ()
  "Tell that the current buffer visits a file."
  (setq ide-bridge--known-as (ide-bridge--path (current-buffer)))
  (ide-bridge--tell-file 'fileOpened (current-buffer)))

(defun ide-bridge--after-rename ()
  "Tell that the current buffer visits another file than before."
  (when ide-bridge--known-as
    (ide-bridge--notify (ide-bridge--links-for ide-bridge--known-as)
                        'fileClosed :path ide-bridge--known-as))
  (ide-bridge--after-visit))

(defun ide-bridge--after-save ()
  "Tell that the current buffer was saved."
  (ide-bridge--tell-file 'fileSaved (current-buffer)))

(defun ide-bridge--before-kill ()
  "Tell that the file of the current buffer is open no more."
  (unless (buffer-base-buffer)
    (ide-bridge--tell-file 'fileClosed (current-buffer))))

(defun ide-bridge--attach-unasked ()
  "Attach the project of the file looked at, unless it is or was declined."
  (when-let* ((path (ide-bridge--path (window-buffer)))
              (folder (with-current-buffer (window-buffer) (ide-bridge--project-folder))))
    (unless (or (member folder ide-bridge--declined)
                (seq-some (lambda (link) (ide-bridge--holds link path)) ide-bridge--links))
      (push folder ide-bridge--declined)
      (ide-bridge--attach folder))))


;;; Diffs

;; A diff is offered by the bridge and stays until it is decided, here or
;; elsewhere.  At most one is on the screen; the others wait for their turn.
;; On the left is the text as it is now, on the right the proposed one; both are
;; buffers of their own that may be edited, and the right one is what is kept.
;; The visited file and its buffer are never touched: the client writes the file.

(defconst ide-bridge--ediff-limit 1000000
  "Texts of more characters are shown as a unified diff; Ediff would take too long.")

(defconst ide-bridge--unified-limit 500000
  "A unified diff is shown up to so many characters.")

(defconst ide-bridge--pause 0.3
  "Seconds without a key after which a window may appear under the user's hands.")

(cl-defstruct (ide-bridge--diff (:constructor ide-bridge--make-diff) (:copier nil))
  "A proposed change.
CONTENTS is the proposed text, or FILE has it.  NOW and PROPOSED are the
buffers of both sides once they were needed.  While it is on the screen,
VIEW is the buffer that controls it, and WINDOWS what was there before."
  link id path title contents file now proposed view windows)

(defvar ide-bridge--diffs nil
  "The diffs to be decided, oldest first.")

(defvar ide-bridge--shown nil
  "The diff that is on the screen, decided or not.")

(defvar ide-bridge--turn nil
  "The timer that waits until a diff may be shown.")

(defun ide-bridge--diffs-of (link)
  "The undecided diffs of LINK."
  (seq-filter (lambda (diff) (eq link (ide-bridge--diff-link diff))) ide-bridge--diffs))

(defun ide-bridge--diff-with (link id)
  "The undecided diff of LINK with the number ID, or nil."
  (seq-find (lambda (diff) (eql id (ide-bridge--diff-id diff))) (ide-bridge--diffs-of link)))

(defun ide-bridge--diff-name (diff)
  "The short name of the file that DIFF would change."
  (let ((path (ide-bridge--diff-path diff))
        (link (ide-bridge--diff-link diff)))
    (if (ide-bridge--holds link path)
        (file-relative-name path (ide-bridge--folder link))
      (abbreviate-file-name path))))

(defun ide-bridge--offer (diff)
  "Let the user decide DIFF, as soon as he can look at it.
A bridge that had to be restarted offers its diffs again; what the user
has done to one of them meanwhile is not thrown away."
  (let ((known (ide-bridge--diff-with (ide-bridge--diff-link diff) (ide-bridge--diff-id diff))))
    (unless (and known (ide-bridge--same-offer-p known diff))
      (when known
        (ide-bridge--close known))
      (setq ide-bridge--diffs (append ide-bridge--diffs (list diff)))
      (run-hook-with-args 'ide-bridge-diff-opened-functions (ide-bridge--diff-path diff))
      (force-mode-line-update t)))
  (ide-bridge--show-soon 0))

(defun ide-bridge--same-offer-p (one other)
  "Whether the diffs ONE and OTHER propose the same."
  (and (ide-bridge--diff-contents one)
       (equal (ide-bridge--diff-path one) (ide-bridge--diff-path other))
       (equal (ide-bridge--diff-contents one) (ide-bridge--diff-contents other))))

(defun ide-bridge--show-soon (seconds)
  "In SECONDS, look whether a diff may be shown."
  (when ide-bridge--turn
    (cancel-timer ide-bridge--turn))
  (setq ide-bridge--turn (run-with-timer seconds nil #'ide-bridge--show-next)))

(defun ide-bridge--show-next ()
  "Show the oldest diff when the screen is free and the user's hands are still.
A key meant for a file would otherwise reach Ediff, and decide something."
  (setq ide-bridge--turn nil)
  (when (and ide-bridge--diffs (not ide-bridge--shown))
    (if (ide-bridge--may-show-p)
        (ide-bridge--show (car ide-bridge--diffs))
      (ide-bridge--show-soon ide-bridge--pause))))

(defun ide-bridge--may-show-p ()
  "Whether a window may appear now."
  (let ((idle (current-idle-time)))
    (and idle
         (time-less-p ide-bridge--pause idle)
         (not (active-minibuffer-window))
         (not (bound-and-true-p isearch-mode))
         (not executing-kbd-macro)
         (zerop (length (this-single-command-keys))) ; no prefix key is waiting
         (ide-bridge--frame))))

(defun ide-bridge--frame ()
  "A frame that somebody can see, or nil; the selected one if possible."
  (let ((frame (or (frame-parent) (selected-frame))))
    (seq-find (lambda (frame)
                (and (not (and (daemonp) (eq frame terminal-frame)))
                     (frame-visible-p frame)
                     (not (eq 'only (frame-parameter frame 'minibuffer)))))
              (cons frame (frame-list)))))

(defun ide-bridge--show (diff &optional view)
  "Put DIFF on the screen, in the given VIEW or the preferred one."
  (select-frame (ide-bridge--frame) t)
  (setf (ide-bridge--diff-windows diff) (current-window-configuration))
  (setq ide-bridge--shown diff)
  (if (eq 'ediff (or view (and (ide-bridge--large-p diff) 'unified) ide-bridge-diff-view))
      (ide-bridge--show-ediff diff)
    (ide-bridge--show-unified diff)))

(defun ide-bridge--large-p (diff)
  "Whether one side of DIFF is too large for Ediff."
  (cl-flet ((size (file) (or (and file (file-attribute-size (file-attributes file))) 0)))
    (< ide-bridge--ediff-limit
       (max (length (ide-bridge--diff-contents diff))
            (size (ide-bridge--diff-file diff))
            (size (ide-bridge--diff-path diff))))))

(defun ide-bridge--hide (diff)
  "Take DIFF off the screen, undecided, and put the windows back.
If it is not to be seen any more, the user has arranged his windows anew;
then they stay as they are, whatever Ediff does when it quits."
  (when-let ((view (ide-bridge--diff-view diff)))
    (let ((windows (if (ide-bridge--seen-p diff)
                       (ide-bridge--diff-windows diff)
                     (current-window-configuration))))
      (setf (ide-bridge--diff-view diff) nil)
      (when (buffer-live-p view)
        ;; A user's hook that fails must not leave the client waiting.
        (with-demoted-errors "ide-bridge: %S"
          (with-current-buffer view
            (if (derived-mode-p 'ediff-mode)
                (ediff-really-quit nil)
              (kill-buffer view)))))
      (when (frame-live-p (window-configuration-frame windows))
        (set-window-configuration windows))))
  (when (eq diff ide-bridge--shown)
    (setq ide-bridge--shown nil)))

(defun ide-bridge--seen-p (diff)
  "Whether DIFF is in a window of the frame where it was shown."
  (let ((frame (window-configuration-frame (ide-bridge--diff-windows diff))))
    (and (frame-live-p frame)
         (seq-some (lambda (buffer) (and (buffer-live-p buffer) (get-buffer-window buffer frame)))
                   (list (ide-bridge--diff-view diff) (ide-bridge--diff-proposed diff))))))

(defun ide-bridge--close (diff)
  "Forget DIFF, which is decided, and clear it away."
  (setq ide-bridge--diffs (delq diff ide-bridge--diffs))
  (force-mode-line-update t)
  (ide-bridge--clear-away diff))

(defun ide-bridge--clear-away (diff)
  "Take DIFF off the screen and make room for the next.
While the user answers a question, windows are not touched."
  (if (active-minibuffer-window)
      (run-with-timer ide-bridge--pause nil #'ide-bridge--clear-away diff)
    (ide-bridge--hide diff)
    (dolist (buffer (list (ide-bridge--diff-now diff) (ide-bridge--diff-proposed diff)))
      (when (buffer-live-p buffer)
        (kill-buffer buffer)))
    (ide-bridge--show-soon 0)))

(defun ide-bridge--decide (diff decision)
  "Tell that the user's DECISION about DIFF is `kept' or `rejected'."
  (unless (memq diff ide-bridge--diffs)
    (user-error "This change has been decided elsewhere"))
  (apply #'ide-bridge--notify (list (ide-bridge--diff-link diff)) 'diffDecided
         :diff (ide-bridge--diff-id diff) :decision (symbol-name decision)
         (and (eq decision 'kept) (ide-bridge--handed-over (ide-bridge--kept diff))))
  (ide-bridge--close diff)
  (message "%s the change of %s" (capitalize (symbol-name decision)) (ide-bridge--diff-name diff))
  (run-hook-with-args 'ide-bridge-diff-decided-functions (ide-bridge--diff-path diff) decision))

(defun ide-bridge--kept (diff)
  "The text of DIFF to be kept, as parameters."
  (let ((proposed (ide-bridge--diff-proposed diff)))
    (cond ((buffer-live-p proposed) (list :contents (ide-bridge--contents proposed)))
          ((ide-bridge--diff-file diff) (list :contentsFile (ide-bridge--diff-file diff)))
          (t (list :contents (ide-bridge--diff-contents diff))))))

(defun ide-bridge--handed-over (kept)
  "KEPT, with a file of our own if it has one, for the bridge to take and delete."
  (if-let ((file (plist-get kept :contentsFile))
           (own (make-temp-file "ide-bridge-kept-")))
      (progn (copy-file file own t)
             (list :contentsFile own))
    kept))

;;;; Both sides

(defun ide-bridge--make-side (diff label fill)
  "Make a buffer for one side of DIFF, named by LABEL and filled by FILL."
  (let* ((path (ide-bridge--diff-path diff))
         (folder (ide-bridge--folder (ide-bridge--diff-link diff))))
    (with-current-buffer (generate-new-buffer
                          (format "%s (%s)" (ide-bridge--diff-name diff) label))
      (setq default-directory (file-name-as-directory folder))
      (setq-local buffer-file-coding-system 'utf-8-unix)
      (funcall fill)
      (goto-char (point-min))
      (ide-bridge--adopt-mode path)
      (setq ide-bridge--diff diff
            buffer-undo-list nil)
      (set-buffer-modified-p nil)
      (current-buffer))))

(defun ide-bridge--adopt-mode (path)
  "Give the current buffer the look of PATH.
The text does not choose the mode, since it may be anybody's, and the
user's hooks are not run: no file is visited here."
  (let ((visiting (ide-bridge--buffer path))
        (mode (assoc-default path auto-mode-alist #'string-match)))
    (when visiting
      (setq mode (buffer-local-value 'major-mode visiting)))
    (when (and (symbolp mode) (fboundp mode))
      (autoload-do-load (symbol-function mode) mode)
      (when (provided-mode-derived-p mode 'prog-mode 'text-mode 'conf-mode)
        (let ((coding buffer-file-coding-system))
          (let ((inhibit-message t))
            (with-demoted-errors "ide-bridge: %S"
              (delay-mode-hooks (funcall mode))))
          (setq-local buffer-file-coding-system coding))
        (font-lock-mode 1)))))

(defun ide-bridge--now (diff)
  "The buffer with the text that DIFF would change, saved or not."
  (let* ((path (ide-bridge--diff-path diff))
         (visiting (ide-bridge--buffer path)))
    (if (buffer-live-p (ide-bridge--diff-now diff))
        (ide-bridge--diff-now diff)
      (setf (ide-bridge--diff-now diff)
            (ide-bridge--make-side
             diff (if (and visiting (buffer-modified-p visiting)) "unsaved" "now")
             (lambda ()
               (cond (visiting (insert (with-current-buffer visiting
                                         (save-restriction (widen) (buffer-substring-no-properties
                                                                    (point-min) (point-max))))))
                     ((file-exists-p path) (insert-file-contents path)))))))))

(defun ide-bridge--proposed (diff)
  "The buffer with the text that DIFF proposes."
  (if (buffer-live-p (ide-bridge--diff-proposed diff))
      (ide-bridge--diff-proposed diff)
    (let ((buffer (ide-bridge--make-side diff "proposed"
                                         (lambda () (ide-bridge--insert-proposed diff)))))
      (with-current-buffer buffer
        (ide-bridge-diff-mode)
        (add-hook 'kill-buffer-hook #'ide-bridge--reject-killed nil t))
      (setf (ide-bridge--diff-proposed diff) buffer))))

(defun ide-bridge--insert-proposed (diff)
  "Insert the text that DIFF proposes; the buffer remembers CR LF line ends."
  (if (ide-bridge--diff-file diff)
      (let ((coding-system-for-read 'utf-8-unix))
        (insert-file-contents (ide-bridge--diff-file diff)))
    (insert (ide-bridge--diff-contents diff)))
  (goto-char (point-min))
  (when (and (search-forward "\r\n" nil t)
             (progn (goto-char (point-min))
                    (not (re-search-forward "\\(?:\\`\\|[^\r]\\)\n" nil t))))
    (setq-local buffer-file-coding-system 'utf-8-dos)
    (while (search-forward "\r\n" nil t)
      (replace-match "\n" t t))))

(defun ide-bridge--reject-killed ()
  "Reject the diff whose buffer is being killed, unless it was decided before."
  (when (memq ide-bridge--diff ide-bridge--diffs)
    (ide-bridge--decide ide-bridge--diff 'rejected)))

(defvar ide-bridge-diff-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'ide-bridge-accept)
    (define-key map (kbd "C-c C-k") #'ide-bridge-reject)
    (define-key map [remap save-buffer] #'ide-bridge-accept)
    map)
  "Keys for deciding a proposed change.")

(define-minor-mode ide-bridge-diff-mode
  "Minor mode of the buffers in which a proposed change is decided."
  :lighter nil
  (setq header-line-format
        (substitute-command-keys
         "Proposed: \\<ide-bridge-diff-mode-map>\\[ide-bridge-accept] keeps, \
\\[ide-bridge-reject] rejects")))

;;;; In Ediff

(defun ide-bridge--show-ediff (diff)
  "Show DIFF in Ediff, in one frame unless the user has chosen otherwise."
  (require 'ediff)
  (let ((ediff-window-setup-function
         (if (eq ediff-window-setup-function #'ediff-setup-windows-default)
             'ediff-setup-windows-plain
           ediff-window-setup-function)))
    (ediff-buffers (ide-bridge--now diff) (ide-bridge--proposed diff)
                   (list (lambda () (ide-bridge--control diff))))
    (ide-bridge--announce)))

(defun ide-bridge--control (diff)
  "Let the current buffer, Ediff's control panel, decide DIFF too."
  (setf (ide-bridge--diff-view diff) (current-buffer))
  (setq ide-bridge--diff diff)
  (define-key ediff-mode-map [remap ediff-quit] #'ide-bridge-quit-diff)
  (define-key ediff-mode-map "q" #'ide-bridge-quit-diff)
  (define-key ediff-mode-map (kbd "C-c C-c") #'ide-bridge-accept)
  (define-key ediff-mode-map (kbd "C-c C-k") #'ide-bridge-reject)
  (add-hook 'ediff-after-quit-hook-internal (lambda () (ide-bridge--reject-ended diff)) nil t))

(defun ide-bridge--reject-ended (diff)
  "Reject DIFF, whose Ediff session was ended, unless we have ended it ourselves."
  (when (and (ide-bridge--diff-view diff) (memq diff ide-bridge--diffs))
    (ide-bridge--decide diff 'rejected)))

(defun ide-bridge--announce ()
  "Explain the diff on the screen, and see to it that the next key is for it.
Emacs has chosen the keymaps for that key already, those of the window the
user came from; a command before it makes Emacs look again."
  (ide-bridge--explain)
  (setq unread-command-events (append unread-command-events '(ide-bridge-shown))))

(defun ide-bridge--explain ()
  "Say what is proposed, and what the user should know before he decides."
  (interactive)
  (when-let* ((diff ide-bridge--shown)
              (path (ide-bridge--diff-path diff)))
    (message "Change of %s proposed; q quits and asks whether to keep it%s"
             (ide-bridge--diff-name diff)
             (if (and (ide-bridge--buffer path) (buffer-modified-p (ide-bridge--buffer path)))
                 (concat ".  " (propertize "You have unsaved changes: they are on the left, and \
only what is on the right is kept" 'face 'warning))
               ""))))

;;;; In Diff mode

(defvar ide-bridge-unified-mode-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map ide-bridge-diff-mode-map)
    (define-key map "e" #'ide-bridge-edit-diff)
    (define-key map "q" #'ide-bridge-quit-diff)
    map)
  "Keys for deciding a change that is shown as a unified diff.")

(define-minor-mode ide-bridge-unified-mode
  "Minor mode of the buffers that show a proposed change as a unified diff."
  :lighter nil
  (setq header-line-format
        (substitute-command-keys
         "Proposed: \\<ide-bridge-unified-mode-map>\\[ide-bridge-accept] keeps, \
\\[ide-bridge-reject] rejects, \\[ide-bridge-edit-diff] edits in Ediff")))

(defvar-local ide-bridge--cut nil
  "Whether there is more in a diff than is shown.")

(defun ide-bridge--show-unified (diff)
  "Show DIFF as a unified diff; only as much of it as is shown comes to Emacs."
  (let ((name (ide-bridge--diff-name diff))
        (old (ide-bridge--old-file diff))
        (new (ide-bridge--new-file diff))
        (buffer (ide-bridge--make-view diff)))
    (setf (ide-bridge--diff-view diff) buffer)
    (make-process
     :name "ide-bridge diff" :buffer buffer :noquery t :connection-type 'pipe
     :coding 'utf-8-unix
     :command (list "diff" "-u" "--strip-trailing-cr" "--label" name "--label" name old new)
     :filter #'ide-bridge--insert-diff
     :sentinel (lambda (process _change)
                 (unless (process-live-p process)
                   (ide-bridge--delete-temporary old new)
                   (ide-bridge--present diff buffer))))))

(defun ide-bridge--make-view (diff)
  "Make the buffer in which DIFF is shown as a unified diff."
  (with-current-buffer (generate-new-buffer (format "%s (diff)" (ide-bridge--diff-name diff)))
    (setq default-directory (file-name-as-directory
                             (ide-bridge--folder (ide-bridge--diff-link diff))))
    (diff-mode)
    (setq ide-bridge--diff diff)
    (ide-bridge-unified-mode)
    ;; Diff mode's own keys for read-only buffers stand there too, with a `q'.
    (push (cons 'ide-bridge-unified-mode ide-bridge-unified-mode-map)
          minor-mode-overriding-map-alist)
    (when (ide-bridge--large-p diff)
      (setq-local diff-font-lock-syntax nil
                  diff-refine nil))
    (add-hook 'kill-buffer-hook #'ide-bridge--reject-view nil t)
    (current-buffer)))

(defun ide-bridge--old-file (diff)
  "A file with the text that DIFF would change."
  (let* ((path (ide-bridge--diff-path diff))
         (visiting (ide-bridge--buffer path)))
    (cond ((and visiting (buffer-modified-p visiting))
           (ide-bridge--write-temporary (ide-bridge--contents visiting)))
          ((file-exists-p path) path)
          (t null-device))))

(defun ide-bridge--new-file (diff)
  "A file with the text that DIFF proposes."
  (let ((kept (ide-bridge--kept diff)))
    (or (plist-get kept :contentsFile)
        (ide-bridge--write-temporary (plist-get kept :contents)))))

(defun ide-bridge--write-temporary (text)
  "Write TEXT to a file that only the user can read; return its name."
  (let ((file (make-temp-file "ide-bridge-diff-"))
        (coding-system-for-write 'utf-8-unix)
        (inhibit-message t))
    (write-region text nil file nil 'silent)
    file))

(defun ide-bridge--delete-temporary (&rest files)
  "Delete those of FILES that we made."
  (dolist (file files)
    (when (string-prefix-p "ide-bridge-diff-" (file-name-nondirectory file))
      (delete-file file))))

(defun ide-bridge--insert-diff (process text)
  "Insert TEXT, a part of what PROCESS found, until it is too much."
  (when (buffer-live-p (process-buffer process))
    (with-current-buffer (process-buffer process)
      (goto-char (point-max))
      (insert text)
      (when (< ide-bridge--unified-limit (buffer-size))
        (delete-region (line-beginning-position) (point-max))
        (setq ide-bridge--cut t)
        (delete-process process)))))

(defun ide-bridge--present (diff buffer)
  "Let the user see DIFF, which is in BUFFER now."
  (when (and (buffer-live-p buffer) (eq buffer (ide-bridge--diff-view diff)))
    (with-current-buffer buffer
      (goto-char (point-min))
      (setq buffer-read-only t)
      (when ide-bridge--cut
        (setq header-line-format (concat header-line-format ".  This is only the beginning"))))
    (pop-to-buffer buffer)
    (ide-bridge--announce)))

(defun ide-bridge--reject-view ()
  "Reject the diff whose view is being killed by the user."
  (when (eq (current-buffer) (ide-bridge--diff-view ide-bridge--diff))
    (ide-bridge--decide ide-bridge--diff 'rejected)))

;;;; Deciding

(defun ide-bridge--this-diff ()
  "The diff that a command means: the one looked at, the only one, or a chosen one."
  (or (and (memq ide-bridge--diff ide-bridge--diffs) ide-bridge--diff)
      (and (null (cdr ide-bridge--diffs)) (car ide-bridge--diffs))
      (ide-bridge--choose-diff)))

(defun ide-bridge--choose-diff ()
  "Let the user choose one of the diffs."
  (unless ide-bridge--diffs
    (user-error "No change is proposed"))
  (let ((choices (seq-map (lambda (diff)
                            (cons (format "%s (%s)" (ide-bridge--diff-name diff)
                                          (ide-bridge--diff-id diff))
                                  diff))
                          ide-bridge--diffs)))
    (cdr (assoc (completing-read "Proposed change: " choices nil t) choices))))

;;;###autoload
(defun ide-bridge-accept ()
  "Keep the proposed change, with what you have changed in it."
  (interactive)
  (ide-bridge--decide (ide-bridge--this-diff) 'kept))

;;;###autoload
(defun ide-bridge-reject ()
  "Reject the proposed change."
  (interactive)
  (ide-bridge--decide (ide-bridge--this-diff) 'rejected))

(defun ide-bridge-quit-diff ()
  "Ask whether to keep the proposed change, and be done with it."
  (interactive)
  (let ((diff (ide-bridge--this-diff)))
    (ide-bridge--decide diff (if (y-or-n-p (format "Keep the change of %s? "
                                                   (ide-bridge--diff-name diff)))
                                 'kept
                               'rejected))))

(defun ide-bridge-edit-diff ()
  "Show the proposed change in Ediff, where it can be edited."
  (interactive)
  (let ((diff (ide-bridge--this-diff)))
    (ide-bridge--hide diff)
    (ide-bridge--show diff 'ediff)))

(defun ide-bridge-show-diff ()
  "Show a proposed change that is not on the screen, in place of one that is."
  (interactive)
  (let ((diff (if (cdr ide-bridge--diffs) (ide-bridge--choose-diff) (ide-bridge--this-diff))))
    (when ide-bridge--shown
      (ide-bridge--hide ide-bridge--shown))
    (ide-bridge--show diff)))


;;; Diagnostics

(defconst ide-bridge--flymake-severities
  '((flymake-error . "error") (flymake-warning . "warning") (flymake-note . "info"))
  "How Flymake's categories are called by others.")

(defun ide-bridge--diagnostic (start end severity message source &optional code)
  "A problem from START to END with its SEVERITY, MESSAGE, SOURCE and CODE."
  (append (list :start start :end end :severity severity
                :message (string-trim (substring-no-properties message)))
          (and source (list :source (format "%s" source)))
          (and code (list :code (format "%s" code)))))

(defun ide-bridge--problems-of (path)
  "What is known of the problems of PATH, or nil without a checker."
  (if-let ((buffer (ide-bridge--buffer path)))
      (ide-bridge--problems buffer)
    (when-let ((problems (and (boundp 'flymake-list-only-diagnostics)
                              (cdr (assoc path flymake-list-only-diagnostics)))))
      (list :path path :fresh :json-false
            :diagnostics (vconcat (mapcar #'ide-bridge--from-flymake problems))))))

(defun ide-bridge--all-problems ()
  "What is known of the problems of all files, a list."
  (let* ((buffers (ide-bridge--buffers))
         (open (mapcar #'ide-bridge--path buffers))
         (others (and (boundp 'flymake-list-only-diagnostics)
                      (seq-remove (lambda (path) (member path open))
                                  (mapcar #'car flymake-list-only-diagnostics)))))
    (delq nil (append (mapcar #'ide-bridge--problems buffers)
                      (mapcar #'ide-bridge--problems-of others)))))

(defun ide-bridge--problems (buffer)
  "What is known of the problems of BUFFER, or nil without a checker."
  (with-current-buffer buffer
    (let ((flymake (bound-and-true-p flymake-mode))
          (flycheck (bound-and-true-p flycheck-mode)))
      (when (or flymake flycheck)
        (list :path (ide-bridge--path buffer)
              :diagnostics
              (vconcat (and flymake (mapcar #'ide-bridge--from-flymake (flymake-diagnostics)))
                       (and flycheck (ide-bridge--from-flycheck)))
              :fresh (ide-bridge--json-flag
                      (and (or (not flymake) (ide-bridge--flymake-done-p))
                           (or (not flycheck) (ide-bridge--flycheck-done-p)))))))))

(defun ide-bridge--from-flymake (problem)
  "PROBLEM, an object of Flymake, as others know it."
  (let ((start (flymake-diagnostic-beg problem))
        (end (flymake-diagnostic-end problem)))
    (ide-bridge--diagnostic
     (ide-bridge--flymake-place start)
     (ide-bridge--flymake-place (or end start))
     (alist-get (get (flymake-diagnostic-type problem) 'flymake-category)
                ide-bridge--flymake-severities "error")
     (flymake-diagnostic-text problem)
     (when-let ((backend (flymake-diagnostic-backend problem)))
       (replace-regexp-in-string "-?-?\\(?:flymake\\(?:-backend\\)?\\)\\'" ""
                                 (format "%s" backend))))))

(defun ide-bridge--flymake-place (locus)
  "The place of LOCUS: a position, or a pair of line and column in a file not open."
  (if (consp locus)
      (list :line (1- (car locus)) :column (max 0 (1- (or (cdr locus) 1))))
    (ide-bridge--place locus)))

(defun ide-bridge--flymake-done-p ()
  "Whether all that Flymake asked has answered, and nothing was changed since."
  (and (not flymake-timer)
       (null (cl-set-difference (flymake-running-backends) (flymake-reporting-backends)))))

(defun ide-bridge--from-flycheck ()
  "The errors that Flycheck found in the current buffer."
  (cl-loop for problem in flycheck-current-errors
           for region = (ide-bridge--at (point-min)
                          (flycheck-error-region-for-mode
                           problem (or flycheck-highlighting-mode 'lines)))
           when region
           collect (ide-bridge--diagnostic
                    (ide-bridge--place (car region))
                    (ide-bridge--place (cdr region))
                    (let ((severity (flycheck-error-level-severity (flycheck-error-level problem))))
                      (cond ((>= severity 100) "error") ((>= severity 10) "warning") (t "info")))
                    (or (flycheck-error-message problem) "")
                    (flycheck-error-checker problem)
                    (flycheck-error-id problem))))

(defun ide-bridge--flycheck-done-p ()
  "Whether Flycheck has looked at the current buffer as it is."
  (not (or (flycheck-running-p) (flycheck-deferred-check-p))))

(defun ide-bridge--tell-diagnostics (&rest _)
  "Tell that the problems of the current buffer may be others now."
  (when-let ((path (and ide-bridge--links (ide-bridge--path (current-buffer)))))
    (ide-bridge--notify (ide-bridge--links-for path) 'diagnosticsChanged :paths (vector path))))


;;; Commands

(defun ide-bridge--project-folder ()
  "The folder of the current project, or nil; a remote one is none."
  (when-let* ((local (not (file-remote-p default-directory)))
              (project (project-current)))
    (directory-file-name (file-truename (project-root project)))))

(defun ide-bridge--folder-here ()
  "The folder of the current buffer's link or project, or else its own."
  (let ((path (ide-bridge--path (current-buffer))))
    (or (and path (seq-some (lambda (link)
                              (and (ide-bridge--holds link path) (ide-bridge--folder link)))
                            ide-bridge--links))
        (ide-bridge--project-folder)
        (directory-file-name (file-truename default-directory)))))

(defun ide-bridge--refuse-remote (folder)
  "Say why FOLDER cannot be served, if it is remote."
  (when (file-remote-p folder)
    (user-error "Remote folders are left out: the programs of this machine cannot open their files")))

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

(defun ide-bridge--client-name (client)
  "How a person would know CLIENT."
  (format "%s %s (process %s%s)"
          (plist-get client :name) (or (plist-get client :version) "") (plist-get client :pid)
          (if-let ((folder (plist-get client :folder)))
              (concat " in " (abbreviate-file-name folder))
            "")))

;;;###autoload
(defun ide-bridge-status (&rest _)
  "Show which bridges are attached, and what they know."
  (interactive)
  (with-current-buffer (get-buffer-create "*ide-bridge*")
    (special-mode)
    (setq-local revert-buffer-function #'ide-bridge-status)
    (let ((inhibit-read-only t))
      (erase-buffer)
      (insert (ide-bridge--describe-setup))
      (dolist (link ide-bridge--links)
        (let ((here (point-marker)))
          (ide-bridge--request link 'status (make-hash-table)
                               (lambda (status) (ide-bridge--insert-status here link status))))))
    (pop-to-buffer (current-buffer))))

(defun ide-bridge--describe-setup ()
  "The command that was found, and what is left out."
  (pcase-let ((`(,command . ,way) (ide-bridge--find-command))
              (remote (seq-count (lambda (buffer)
                                   (let ((name (buffer-file-name buffer)))
                                     (and name (file-remote-p name))))
                                 (buffer-list))))
    (concat (if command
                (format "Command: %s (from %s)\n" (string-join command " ") way)
              "Command: none found; install it with `pipx install ide-bridge'\n")
            (if ide-bridge--links "" "No project is attached; M-x ide-bridge-start does that\n")
            (if (zerop remote) "" (format "Left out: %d remote buffers\n" remote)))))

(defun ide-bridge--insert-status (here link status)
  "Insert at the marker HERE the STATUS that the bridge of LINK has sent."
  (when (buffer-live-p (marker-buffer here))
    (with-current-buffer (marker-buffer here)
      (let ((inhibit-read-only t))
        (save-excursion
          (goto-char here)
          (insert (ide-bridge--describe-status link status)))))))

(defun ide-bridge--describe-status (link status)
  "In words, the STATUS that the bridge of LINK has sent."
  (cl-flet ((listed (key describe) (if-let ((items (append (plist-get status key) nil)))
                                       (string-join (mapcar describe items) "\n           ")
                                     "none")))
    (format "\n%s\n  Bridge:  process %s, port %s\n  Clients: %s\n  Editors: %s\n  Diffs:   %s
  Sharing: %s\n"
            (propertize (abbreviate-file-name (ide-bridge--folder link)) 'face 'bold)
            (plist-get status :pid) (plist-get status :port)
            (listed :clients #'ide-bridge--client-name)
            (listed :editors (lambda (editor) (plist-get editor :name)))
            (length (ide-bridge--diffs-of link))
            (plist-get status :sharing))))

;;;###autoload
(defun ide-bridge-doctor ()
  "Find out why clients cannot connect, and say what to do."
  (interactive)
  (let ((default-directory (file-name-as-directory (ide-bridge--folder-here)))
        (command (ide-bridge--command "doctor"))
        (buffer (get-buffer-create "*ide-bridge doctor*")))
    (with-current-buffer buffer
      (special-mode)
      (let ((inhibit-read-only t))
        (erase-buffer)
        (insert (ide-bridge--describe-setup) "\n"))
      (make-process :name "ide-bridge doctor" :buffer buffer :command command
                    :connection-type 'pipe :noquery t :sentinel #'ignore))
    (pop-to-buffer buffer)))

;;;###autoload
(defun ide-bridge-claude (&optional arguments)
  "Show the CLI in a terminal window, already connected, or hide it.
With a prefix argument, ask for ARGUMENTS of the command line."
  (interactive (list (and current-prefix-arg
                          (split-string-and-unquote (read-string "Arguments for claude: ")))))
  (let* ((folder (or (bound-and-true-p ide-bridge--claude-folder) (ide-bridge--folder-here)))
         (name (format "claude: %s" (file-name-nondirectory folder)))
         (buffer (get-buffer (format "*%s*" name)))
         (window (and buffer (get-buffer-window buffer))))
    (ide-bridge--refuse-remote folder)
    (cond ((and window (get-buffer-process buffer)) (quit-window nil window))
          ((and buffer (get-buffer-process buffer)) (pop-to-buffer buffer))
          (t (when buffer (kill-buffer buffer))
             (ide-bridge--start-claude folder name arguments)))))

(defvar-local ide-bridge--claude-folder nil
  "In a terminal with a CLI: the folder it was started for.")

(defun ide-bridge--start-claude (folder name arguments)
  "Start the CLI for FOLDER with ARGUMENTS, in a terminal whose buffer has NAME."
  (let* ((default-directory (file-name-as-directory folder))
         (buffer (ide-bridge--make-terminal
                  name (apply #'ide-bridge--command "run" "claude" arguments))))
    (with-current-buffer buffer
      (setq ide-bridge--claude-folder folder))
    (pop-to-buffer buffer)))

(defun ide-bridge--make-terminal (name command)
  "Run COMMAND in a terminal and return its buffer, called NAME between asterisks."
  (pcase (or ide-bridge-terminal
             (seq-find (lambda (library) (require library nil t)) '(vterm eat))
             'term)
    ('vterm (require 'vterm)
            (with-current-buffer (get-buffer-create (format "*%s*" name))
              (let ((vterm-shell (mapconcat #'shell-quote-argument command " ")))
                (vterm-mode))
              (current-buffer)))
    ('eat (require 'eat)
          (apply #'eat-make name (car command) nil (cdr command)))
    (_ (ide-bridge--make-term name command))))

(defun ide-bridge--make-term (name command)
  "Run COMMAND in Term and return its buffer, called NAME between asterisks.
As in `ansi-term', commands that begin with Control-X reach Emacs."
  (require 'term)
  (with-current-buffer (apply #'make-term name (car command) nil (cdr command))
    (term-mode)
    (term-char-mode)
    (let (term-escape-char)
      (term-set-escape-char ?\C-x))
    (current-buffer)))


;;; The mode

(defvar ide-bridge-command-map
  (let ((map (make-sparse-keymap)))
    (pcase-dolist (`(,key . ,command)
                   '(("s" . ide-bridge-send) ("a" . ide-bridge-accept) ("r" . ide-bridge-reject)
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
  :lighter (:eval (ide-bridge--lighter))
  (if ide-bridge-mode
      (progn (ide-bridge--listen)
             (when-let ((folder (and (null ide-bridge--links) (ide-bridge--project-folder))))
               (ide-bridge-start folder)))
    (ide-bridge--turn-deaf)
    (mapc #'ide-bridge--detach ide-bridge--links)))

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
        (withheld (remove "full" (delq nil (mapcar #'ide-bridge--sharing ide-bridge--links)))))
    (list (propertize (format " Bridge:%s" (if ide-bridge--links (length clients) "off"))
                      'help-echo (if clients (mapconcat #'ide-bridge--client-name clients "\n")
                                   "No client is connected"))
          (if withheld (format "(%s)" (car withheld)) "")
          (pcase diffs
            (0 "")
            (_ (propertize (format " %d diff%s" diffs (if (= diffs 1) "" "s"))
                           'face 'warning 'help-echo "Proposed changes wait for your decision"))))))

(provide 'ide-bridge)
;;; ide-bridge.el ends here
