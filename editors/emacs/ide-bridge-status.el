;;; ide-bridge-status.el --- What ide-bridge is attached to, and why not  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The ide_bridge authors

;; Author: The ide_bridge authors
;; URL: https://github.com/ide-bridge/ide-bridge
;; SPDX-License-Identifier: MIT

;; This file is not part of GNU Emacs.

;;; Commentary:

;; The two buffers for somebody who wonders whether it works.
;;
;; It does not know more than the bridge and its program say.

;;; Code:

(require 'cl-lib)
(require 'ide-bridge-diff)
(require 'ide-bridge-link)
(require 'seq)
(require 'subr-x)

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

(provide 'ide-bridge-status)
;;; ide-bridge-status.el ends here
