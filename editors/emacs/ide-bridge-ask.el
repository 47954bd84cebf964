;;; ide-bridge-ask.el --- Ask Claude something, from Emacs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The ide_bridge authors

;; Author: The ide_bridge authors
;; URL: https://github.com/ide-bridge/ide-bridge
;; SPDX-License-Identifier: MIT

;; This file is not part of GNU Emacs.

;;; Commentary:

;; A question goes into a session, which the bridge starts if there is none; the
;; answer comes as events, which the session's buffer shows.  Sessions live in the
;; bridge: they go on when their buffer is killed, or Emacs.
;;
;; It does not know how a session is shown, or what it may do.

;;; Code:

(require 'ide-bridge)
(require 'ide-bridge-approvals)
(require 'ide-bridge-buffers)
(require 'ide-bridge-link)
(require 'ide-bridge-session)
(require 'seq)
(require 'subr-x)

(defconst ide-bridge--silence 3
  "Seconds without an event after which a session at work is looked after.
A bridge that was killed and has come back tells nobody that it lost one.")

(defvar ide-bridge--questions nil
  "What was asked before, for the minibuffer.")

(defvar ide-bridge--asking nil
  "The links on which a question is on its way, each as often as there is one.")

(defvar ide-bridge--last-session nil
  "The id of the session that was asked last.")

(defvar ide-bridge--lookout nil
  "The timer that looks after sessions which are silent.")


;;; Asking

;;;###autoload
(defun ide-bridge-ask (question &optional new)
  "Ask QUESTION in the session of this buffer, or the last one, or a new one.
An active region goes along.  With NEW, the prefix argument, it is a
new session in any case."
  (interactive (list (ide-bridge--read-question) current-prefix-arg))
  (when (string-blank-p question)
    (user-error "Nothing was asked"))
  (let ((params (append (list :text question)
                        (if new '(:new t) (and ide-bridge--session (list :session ide-bridge--session)))
                        (ide-bridge--about))))
    (setq deactivate-mark t)
    (ide-bridge--with-link (lambda (link) (ide-bridge--send-question link params)))))

(defun ide-bridge--read-question ()
  "Read a question in the minibuffer."
  (read-string (cond (current-prefix-arg "Ask in a new session: ")
                     ((ide-bridge--region) "Ask about the region: ")
                     (t "Ask: "))
               nil 'ide-bridge--questions nil t))

(defun ide-bridge--region ()
  "Where the selection begins and ends, or nil if nothing is selected."
  (let ((bounds (ide-bridge--bounds)))
    (and (not ide-bridge--session) (apply #'< bounds) bounds)))

(defun ide-bridge--about ()
  "What is selected, as parameters of a question."
  (when-let ((bounds (ide-bridge--region)))
    (let ((selection (ide-bridge--selection (current-buffer))))
      (append (list :selection (plist-get selection :text))
              (and (plist-get selection :path)
                   (list :path (plist-get selection :path)
                         :start (plist-get selection :start)
                         :end (plist-get selection :end)))))))

(defun ide-bridge--with-link (then)
  "Call THEN with the link of the current buffer, once it is there and ready."
  (let ((link (ide-bridge--link-or-start)))
    (ide-bridge--when-ready link (lambda () (funcall then link)))))

(defun ide-bridge--link-or-start ()
  "The link of the current buffer; if it has none, start one."
  (let ((path (or (ide-bridge--path (current-buffer)) default-directory))
        (current-prefix-arg nil))
    (or (car (memq ide-bridge--session-link ide-bridge--links))
        (ide-bridge--link-of-folder ide-bridge--session-folder)
        (seq-find (lambda (link) (ide-bridge--holds link path)) ide-bridge--links)
        (and (not ide-bridge--session-folder) (not (ide-bridge--project-folder))
             (car ide-bridge--links))
        (progn (if ide-bridge--session-folder (ide-bridge-start ide-bridge--session-folder)
                 (call-interactively #'ide-bridge-start))
               (car ide-bridge--links)))))

(defun ide-bridge--link-of-folder (folder)
  "The link for FOLDER, or nil."
  (and folder (seq-find (lambda (link) (equal folder (ide-bridge--folder link))) ide-bridge--links)))

(defun ide-bridge--send-question (link params)
  "Send the question in PARAMS on LINK, and show the session that got it."
  (push link ide-bridge--asking)
  (ide-bridge--session-request
   link 'ask params
   (lambda (answer)
     (ide-bridge--asked link)
     (let ((buffer (ide-bridge--watch (plist-get answer :session) link)))
       (setq ide-bridge--last-session (plist-get answer :session))
       (with-current-buffer buffer
         (setq ide-bridge--session-title (or (plist-get answer :title) "")))
       (ide-bridge--display-session buffer)))
   (lambda () (ide-bridge--asked link))))

(defun ide-bridge--asked (link)
  "A question on LINK has arrived, or never will."
  (setq ide-bridge--asking (seq-remove (let (done) (lambda (one)
                                                     (and (eq one link) (not done) (setq done t))))
                                       ide-bridge--asking)))

(defun ide-bridge--session-request (link method params then &optional failed)
  "Ask LINK for METHOD with PARAMS, which older bridges do not know; call THEN.
If that fails, say why, and call FAILED."
  (ide-bridge--request
   link method params then
   (lambda (text code)
     (message "%s" (propertize (if (eql -32601 code)
                                   "This bridge has no sessions; update ide-bridge."
                                 (format "ide-bridge: %s" text))
                               'face 'error))
     (when failed (funcall failed)))))


;;; Watching

(defun ide-bridge--watch (id link)
  "The buffer of the session ID, which is watched through LINK from now on."
  (let ((buffer (ide-bridge--session-buffer id)))
    (with-current-buffer buffer
      (unless ide-bridge--session-link
        (ide-bridge--renew link)
        (add-hook 'kill-buffer-hook #'ide-bridge--unwatch nil t))
      (setq ide-bridge--session-link link
            ide-bridge--session-bridge (ide-bridge--bridge link)
            ide-bridge--session-folder (ide-bridge--folder link)
            default-directory (file-name-as-directory (ide-bridge--folder link))))
    (ide-bridge--look-out)
    buffer))

(defun ide-bridge--renew (link)
  "Prepare the current buffer, whose session was not watched, to be told on LINK.
The same bridge tells the whole story again; another one only what is new."
  (when (and ide-bridge--session-bridge
             (equal ide-bridge--session-bridge (ide-bridge--bridge link)))
    (ide-bridge--clear)))

(defun ide-bridge--clear ()
  "Make the current buffer, that of a session, empty."
  (let ((inhibit-read-only t))
    (setq ide-bridge--queue nil
          ide-bridge--queued 0
          ide-bridge--piece nil)
    (clrhash ide-bridge--items)
    (erase-buffer)))

(defun ide-bridge--unwatch ()
  "Tell the bridge that the session of the current buffer is not watched any more."
  (when (and (memq ide-bridge--session-link ide-bridge--links)
             (jsonrpc-running-p ide-bridge--session-link))
    (ide-bridge--request ide-bridge--session-link 'unwatchSession
                         (list :session ide-bridge--session) #'ignore #'ignore)))

(defun ide-bridge--session-event (link id event)
  "Take note of EVENT of the session ID, told on LINK."
  (let ((buffer (gethash id ide-bridge--session-buffers)))
    (when (and (memq link ide-bridge--asking)
               (not (and (buffer-live-p buffer)
                         (buffer-local-value 'ide-bridge--session-link buffer))))
      (setq buffer (ide-bridge--watch id link)))
    (when (buffer-live-p buffer)
      (ide-bridge--session-hear buffer event)
      (when (equal "state" (plist-get event :kind))
        (ide-bridge--look-out)))))

(defun ide-bridge--display-session (buffer)
  "Let the user see BUFFER, without taking him there."
  (unless (get-buffer-window buffer 'visible)
    (display-buffer buffer '(nil (inhibit-same-window . t)))))

(defun ide-bridge--open-session (id link)
  "Show the session ID of LINK, and watch it."
  (let ((buffer (ide-bridge--session-buffer id)))
    (unless (buffer-local-value 'ide-bridge--session-link buffer)
      (ide-bridge--watch id link)
      (ide-bridge--session-request
       link 'watchSession (list :session id)
       (lambda (answer) (ide-bridge--session-is buffer (plist-get answer :session)))))
    (pop-to-buffer buffer)))

(defun ide-bridge--session-is (buffer session)
  "Let the user see in BUFFER what is known of SESSION."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (setq ide-bridge--session-title (or (plist-get session :title) "")
            ide-bridge--session-state (plist-get session :state))
      (force-mode-line-update))))

(defun ide-bridge--lose-sessions (link)
  "Say in the buffers of LINK, which has ended, that they hear no more."
  (setq ide-bridge--asking (remq link ide-bridge--asking))
  (ide-bridge--each-session
   (lambda (buffer)
     (when (eq link ide-bridge--session-link)
       (ide-bridge--lose buffer "The bridge is gone; RET asks again.")))))

(defun ide-bridge--lose (buffer text)
  "Say TEXT in BUFFER, whose session is not watched any more."
  (with-current-buffer buffer
    (setq ide-bridge--session-link nil)
    (ide-bridge--session-hear buffer (list :kind "state" :state "lost" :text text))))

(add-hook 'ide-bridge--ended-functions #'ide-bridge--lose-sessions)

(defun ide-bridge--each-session (act)
  "Call ACT with each buffer of a session, which is current then."
  (maphash (lambda (_id buffer)
             (when (buffer-live-p buffer)
               (with-current-buffer buffer (funcall act buffer))))
           ide-bridge--session-buffers))


;;; Looking after sessions that are silent

(defun ide-bridge--look-out ()
  "See to it that sessions at work are looked after."
  (unless ide-bridge--lookout
    (setq ide-bridge--lookout
          (run-with-timer ide-bridge--silence nil #'ide-bridge--look-after))))

(defun ide-bridge--look-after ()
  "Ask the bridges of silent sessions at work whether they still have them."
  (setq ide-bridge--lookout nil)
  (let (links)
    (ide-bridge--each-session
     (lambda (_buffer)
       (when (and ide-bridge--session-link (ide-bridge--at-work-p))
         (ide-bridge--look-out)
         (when (< ide-bridge--silence (- (float-time) (or ide-bridge--session-heard 0)))
           (cl-pushnew ide-bridge--session-link links)))))
    (dolist (link links)
      (ide-bridge--request link 'sessions (make-hash-table)
                           (lambda (sessions) (ide-bridge--compare link (append sessions nil)))
                           #'ignore))))

(defun ide-bridge--at-work-p ()
  "Whether the session of the current buffer is believed to do something."
  (member ide-bridge--session-state '("starting" "working" "waiting")))

(defun ide-bridge--compare (link sessions)
  "Find out which sessions of LINK are not among the live SESSIONS any more."
  (ide-bridge--each-session
   (lambda (buffer)
     (let ((state (plist-get (seq-find (lambda (session)
                                         (equal ide-bridge--session (plist-get session :session)))
                                       sessions)
                             :state)))
       (when (and (eq link ide-bridge--session-link) (ide-bridge--at-work-p)
                  (member state '(nil "lost" "stopped")))
         (setq ide-bridge--session-bridge nil)
         (ide-bridge--lose buffer "The session is lost: its bridge had to be restarted.  \
RET asks again, and it goes on."))))))


;;; Interrupting and stopping

;;;###autoload
(defun ide-bridge-interrupt ()
  "Break off what the session of this buffer, or the one asked last, is doing."
  (interactive)
  (let ((session (or ide-bridge--session ide-bridge--last-session)))
    (ide-bridge--session-request
     (or (car (memq ide-bridge--session-link ide-bridge--links)) (ide-bridge--link-here))
     'interrupt (if session (list :session session) (make-hash-table))
     (lambda (_) (message "Interrupted")))))

;;;###autoload
(defun ide-bridge-stop-session ()
  "End the session of this buffer, or one of your choice.
A question that is asked in it later takes it up again."
  (interactive)
  (let ((link (or (car (memq ide-bridge--session-link ide-bridge--links)) (ide-bridge--link-here))))
    (if ide-bridge--session (ide-bridge--stop-session link ide-bridge--session)
      (ide-bridge--session-request
       link 'sessions (make-hash-table)
       ;; A timer, because no answer may be waited for where messages are read.
       (lambda (sessions) (run-with-timer 0 nil #'ide-bridge--choose-to-stop link
                                          (append sessions nil)))))))

(defun ide-bridge--choose-to-stop (link sessions)
  "Ask which of the SESSIONS of LINK to stop."
  (let ((choices (mapcar (lambda (session)
                           (cons (format "%s  %s" (ide-bridge--short (plist-get session :session))
                                         (ide-bridge--one-line (plist-get session :title) 60))
                                 (plist-get session :session)))
                         (seq-remove (lambda (session)
                                       (member (plist-get session :state) '("lost" "stopped")))
                                     sessions))))
    (if (null choices) (message "No session is running")
      (ide-bridge--stop-session
       link (cdr (assoc (completing-read "Stop session: " choices nil t) choices))))))

(defun ide-bridge--stop-session (link session)
  "End SESSION of LINK."
  (ide-bridge--session-request link 'stopSession (list :session session)
                               (lambda (_) (message "Stopped session %s" (ide-bridge--short session)))))

(provide 'ide-bridge-ask)
;;; ide-bridge-ask.el ends here
