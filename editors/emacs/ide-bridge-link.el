;;; ide-bridge-link.el --- The conversation of Emacs with a bridge  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The ide_bridge authors

;; Author: The ide_bridge authors
;; URL: https://github.com/ide-bridge/ide-bridge
;; SPDX-License-Identifier: MIT

;; This file is not part of GNU Emacs.

;;; Commentary:

;; A link is the conversation with the bridge of one workspace: a process that
;; relays to it, and `jsonrpc.el' on top.  Other files say what is answered, by
;; methods of `ide-bridge--answer' and `ide-bridge--hear', and what is done when a
;; link begins and ends, by its hooks.
;;
;; It does not know what is said.

;;; Code:

(require 'cl-lib)
(require 'ide-bridge-buffers)
(require 'ide-bridge-options)
(require 'jsonrpc)
(require 'project)
(require 'seq)
(require 'subr-x)

(defconst ide-bridge--file (or load-file-name buffer-file-name)
  "Where this file lies; perhaps the Python part lies next to it.")

(defvar ide-bridge--links nil
  "The live links, newest first.")

(defvar ide-bridge--declined nil
  "Folders not to be attached unasked: it failed, or you stopped it.")

(defvar ide-bridge--ready-functions nil
  "Functions called with a link whose bridge has said hello.")

(defvar ide-bridge--ended-functions nil
  "Functions called with a link that has ended.")

(defclass ide-bridge-link (jsonrpc-process-connection)
  ((folder :initarg :folder :reader ide-bridge--folder
           :documentation "The folder that was attached, without a final slash.")
   (ready :initform nil :accessor ide-bridge--ready
          :documentation "Whether the bridge has said hello.")
   (clients :initform nil :accessor ide-bridge--clients
            :documentation "The connected clients, a list of property lists.")
   (waiting :initform nil :accessor ide-bridge--waiting
            :documentation "Functions to call once the bridge has said hello.")
   (bridge :initform nil :accessor ide-bridge--bridge
           :documentation "The process id of the bridge that said hello.")
   (sharing :initform nil :accessor ide-bridge--sharing
            :documentation "The policy for what is shared unasked, a string.")
   (complaint :initform nil :accessor ide-bridge--complaint
              :documentation "The last line the relay wrote to its log.")
   (stopping :initform nil :accessor ide-bridge--stopping
             :documentation "Whether the end of this link is our own wish."))
  :documentation "The conversation with the bridge of one workspace.")


;;; The program

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


;;; A life

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
     (setf (ide-bridge--ready link) t
           (ide-bridge--bridge link) (plist-get answer :pid))
     (ide-bridge--clients-are link (plist-get answer :clients))
     (ide-bridge--request link 'share (make-hash-table)
                          (lambda (policy) (ide-bridge--policy-is link policy)))
     (run-hook-with-args 'ide-bridge--ready-functions link)
     (message "Attached %s; type /ide in claude to connect"
              (abbreviate-file-name (ide-bridge--folder link)))
     (mapc #'funcall (nreverse (ide-bridge--waiting link)))
     (setf (ide-bridge--waiting link) nil))
   (lambda (text _code)
     (message "ide-bridge: %s" text)
     (ide-bridge--detach link))))

(defun ide-bridge--when-ready (link act)
  "Call ACT, now or as soon as the bridge of LINK has said hello."
  (if (ide-bridge--ready link) (funcall act)
    (push act (ide-bridge--waiting link))))

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
    (unless (ide-bridge--stopping link)
      (push (ide-bridge--folder link) ide-bridge--declined)
      (message "%s" (ide-bridge--obituary link)))
    (run-hook-with-args 'ide-bridge--ended-functions link)
    (force-mode-line-update t)))

(defun ide-bridge--obituary (link)
  "What to say about LINK, which ended without our doing."
  (if (eql 0 (process-exit-status (jsonrpc--process link)))
      (format "The bridge of %s was stopped" (abbreviate-file-name (ide-bridge--folder link)))
    (propertize (format "ide-bridge: %s" (or (ide-bridge--complaint link)
                                             "the relay ended without a word"))
                'face 'error)))


;;; What is said

(defun ide-bridge--request (link method params then &optional otherwise)
  "Ask LINK for METHOD with PARAMS; call THEN with the result.
If that fails, call OTHERWISE with a sentence and a code, or else show it."
  (jsonrpc-async-request
   link method params :timeout 60
   :success-fn then
   :error-fn (jsonrpc-lambda (&key message code &allow-other-keys)
               (unless (ide-bridge--stopping link)
                 (funcall (or otherwise (lambda (text _code) (message "ide-bridge: %s" text)))
                          message code)))
   :timeout-fn (lambda () (message "ide-bridge: no answer to `%s'" method))))

(defun ide-bridge--notify (links method &rest params)
  "Tell each of LINKS, if it can hear, METHOD with PARAMS."
  (dolist (link links)
    (when (and (ide-bridge--ready link) (jsonrpc-running-p link))
      (jsonrpc-notify link method params))))

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

(defun ide-bridge--handle-notification (link method params)
  "Take note of METHOD with PARAMS, told on LINK."
  ;; An error in a process filter would make Emacs pause for two seconds.
  (with-demoted-errors "ide-bridge: %S"
    (apply #'ide-bridge--hear link method params)))

(cl-defgeneric ide-bridge--hear (_link _method &rest _params)
  "Take note of METHOD with PARAMS, a property list, told on LINK.
What is not known is ignored."
  nil)

(cl-defmethod ide-bridge--hear (link (_method (eql 'clientsChanged))
                                     &key clients &allow-other-keys)
  "Other CLIENTS are connected to the bridge of LINK now."
  (ide-bridge--clients-are link clients))

(cl-defmethod ide-bridge--hear (_link (_method (eql 'message)) &key level text &allow-other-keys)
  "The bridge has a TEXT for the user, with the gravity of LEVEL."
  (ide-bridge--say level text))

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

(defun ide-bridge--client-name (client)
  "How a person would know CLIENT."
  (format "%s %s (process %s%s)"
          (plist-get client :name) (or (plist-get client :version) "") (plist-get client :pid)
          (if-let ((folder (plist-get client :folder)))
              (concat " in " (abbreviate-file-name folder))
            "")))


;;; Which link

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

(provide 'ide-bridge-link)
;;; ide-bridge-link.el ends here
