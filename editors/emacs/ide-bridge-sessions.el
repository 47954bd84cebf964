;;; ide-bridge-sessions.el --- The list of Claude's sessions  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The ide_bridge authors

;; Author: The ide_bridge authors
;; URL: https://github.com/ide-bridge/ide-bridge
;; SPDX-License-Identifier: MIT

;; This file is not part of GNU Emacs.

;;; Commentary:

;; The sessions that the attached bridges know, wherever they were started.
;;
;; It does not know what happens in them.

;;; Code:

(require 'ide-bridge-approvals)
(require 'ide-bridge-ask)
(require 'ide-bridge-buffers)
(require 'ide-bridge-link)
(require 'seq)
(require 'subr-x)
(require 'tabulated-list)

(defvar-local ide-bridge--listed nil
  "The sessions in the list: pairs of a link and what its bridge has sent.")

(defvar ide-bridge-sessions-mode-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map tabulated-list-mode-map)
    (define-key map (kbd "RET") #'ide-bridge-open-session)
    (define-key map "i" #'ide-bridge-ask-listed)
    (define-key map "k" #'ide-bridge-stop-listed)
    (define-key map (kbd "C-c C-c") #'ide-bridge-interrupt-listed)
    map)
  "Keymap of the list of sessions.")

(define-derived-mode ide-bridge-sessions-mode tabulated-list-mode "Sessions"
  "The sessions of the attached projects.

\\{ide-bridge-sessions-mode-map}"
  (setq tabulated-list-format [("State" 9 t) ("Age" 5 nil) ("Cost" 9 nil) ("Id" 9 t) ("Title" 0 t)]
        tabulated-list-padding 1
        tabulated-list-entries #'ide-bridge--session-rows)
  (add-hook 'tabulated-list-revert-hook #'ide-bridge--refresh-sessions nil t)
  (tabulated-list-init-header))

(defun ide-bridge--session-rows ()
  "The sessions as rows of a table, newest first."
  (mapcar
   (lambda (listed)
     (let ((session (cdr listed)))
       (list (plist-get session :session)
             (vector (ide-bridge--state-cell (plist-get session :state))
                     (ide-bridge--age (plist-get session :changed))
                     (if (numberp (plist-get session :cost)) (format "$%.4f" (plist-get session :cost)) "")
                     (ide-bridge--short (plist-get session :session))
                     (ide-bridge--one-line (plist-get session :title))))))
   (seq-sort-by (lambda (listed) (or (plist-get (cdr listed) :changed) 0)) #'> ide-bridge--listed)))

(defun ide-bridge--state-cell (state)
  "STATE with the face of its gravity."
  (propertize state 'face (pcase state ("waiting" 'warning) ("working" 'success) ("lost" 'error)
                                 ("stopped" 'shadow) (_ 'default))))

;;;###autoload
(defun ide-bridge-sessions ()
  "List the sessions of the attached projects."
  (interactive)
  (ide-bridge--with-link
   (lambda (_link)
     (with-current-buffer (get-buffer-create "*ide-bridge sessions*")
       (unless (derived-mode-p 'ide-bridge-sessions-mode)
         (ide-bridge-sessions-mode))
       (ide-bridge--refresh-sessions)
       (pop-to-buffer (current-buffer))))))

(defun ide-bridge--refresh-sessions ()
  "Ask all bridges for their sessions, and list them in the current buffer."
  (setq ide-bridge--listed
        (seq-filter (lambda (listed) (memq (car listed) ide-bridge--links)) ide-bridge--listed))
  (tabulated-list-print t)
  (let ((buffer (current-buffer)))
    (dolist (link ide-bridge--links)
      (ide-bridge--session-request
       link 'sessions (make-hash-table)
       (lambda (sessions) (ide-bridge--list-sessions buffer link (append sessions nil)))))))

(defun ide-bridge--list-sessions (buffer link sessions)
  "List in BUFFER the SESSIONS of LINK."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (setq ide-bridge--listed
            (append (seq-remove (lambda (listed) (eq link (car listed))) ide-bridge--listed)
                    (mapcar (lambda (session) (cons link session)) sessions)))
      (tabulated-list-print t))))

(defun ide-bridge--session-here ()
  "The session on this line: a pair of its link and its id."
  (let ((id (tabulated-list-get-id)))
    (or (seq-some (lambda (listed)
                    (and id (equal id (plist-get (cdr listed) :session)) (cons (car listed) id)))
                  ide-bridge--listed)
        (user-error "There is no session on this line"))))

(defun ide-bridge-open-session ()
  "Show the session on this line, and follow it."
  (interactive)
  (pcase-let ((`(,link . ,id) (ide-bridge--session-here)))
    (ide-bridge--open-session id link)))

(defun ide-bridge-ask-listed ()
  "Show the session on this line, and ask in it."
  (interactive)
  (ide-bridge-open-session)
  (call-interactively #'ide-bridge-ask))

(defun ide-bridge-stop-listed ()
  "End the session on this line."
  (interactive)
  (pcase-let ((`(,link . ,id) (ide-bridge--session-here)))
    (ide-bridge--stop-session link id)))

(defun ide-bridge-interrupt-listed ()
  "Break off what the session on this line is doing."
  (interactive)
  (pcase-let ((`(,link . ,id) (ide-bridge--session-here)))
    (ide-bridge--session-request link 'interrupt (list :session id)
                                 (lambda (_) (message "Interrupted")))))

(provide 'ide-bridge-sessions)
;;; ide-bridge-sessions.el ends here
