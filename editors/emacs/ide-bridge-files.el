;;; ide-bridge-files.el --- Open files and the selection, told to a bridge  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The ide_bridge authors

;; Author: The ide_bridge authors
;; URL: https://github.com/ide-bridge/ide-bridge
;; SPDX-License-Identifier: MIT

;; This file is not part of GNU Emacs.

;;; Commentary:

;; What the bridge may ask about files and do with them, and what it is told
;; unasked: which file has the focus, what is selected, what was opened, saved and
;; closed.
;;
;; It does not know who wants to know; the bridge decides what leaves.

;;; Code:

(require 'cl-lib)
(require 'ide-bridge-buffers)
(require 'ide-bridge-link)
(require 'ide-bridge-options)
(require 'seq)
(require 'subr-x)


;;; What the bridge asks

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

(defvar-local ide-bridge--warned nil
  "The time stamp of the file version that the user was warned about.")

(cl-defmethod ide-bridge--hear (_link (_method (eql 'fileChanged)) &key path &allow-other-keys)
  "A client has written PATH."
  (ide-bridge--reload path))

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

(defun ide-bridge--tell-anew (_link)
  "Tell focus and selection again: there is somebody new to hear."
  (setq ide-bridge--told nil
        ide-bridge--focused nil)
  (ide-bridge--tell-selection))

(add-hook 'ide-bridge--ready-functions #'ide-bridge--tell-anew)

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

(provide 'ide-bridge-files)
;;; ide-bridge-files.el ends here
