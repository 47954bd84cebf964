;;; ide-bridge-diff-view.el --- How ide-bridge shows a proposed change  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The ide_bridge authors

;; Author: The ide_bridge authors
;; URL: https://github.com/ide-bridge/ide-bridge
;; SPDX-License-Identifier: MIT

;; This file is not part of GNU Emacs.

;;; Commentary:

;; Both ways of looking at a diff: side by side in Ediff, or unified in Diff mode.
;;
;; It does not know when one is shown, or what becomes of it.

;;; Code:

(require 'diff-mode)
(require 'ide-bridge-buffers)
(require 'ide-bridge-diff)
(require 'ide-bridge-link)
(require 'subr-x)

(defvar ediff-after-quit-hook-internal)
(defvar ediff-mode-map)
(defvar ediff-window-setup-function)

(declare-function ediff-setup-windows-default "ediff-wind")


;;; In Ediff

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


;;; In Diff mode

(defconst ide-bridge--unified-limit 500000
  "A unified diff is shown up to so many characters.")

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

(provide 'ide-bridge-diff-view)
;;; ide-bridge-diff-view.el ends here
