;;; ide-bridge-diagnostics.el --- Problems of files, told to a bridge  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The ide_bridge authors

;; Author: The ide_bridge authors
;; URL: https://github.com/ide-bridge/ide-bridge
;; SPDX-License-Identifier: MIT

;; This file is not part of GNU Emacs.

;;; Commentary:

;; What Flymake and Flycheck found, in the words of the link.
;;
;; It does not check anything, and loads neither of them.

;;; Code:

(require 'cl-lib)
(require 'ide-bridge-buffers)
(require 'ide-bridge-link)
(require 'seq)
(require 'subr-x)

(defvar flycheck-current-errors)
(defvar flycheck-highlighting-mode)
(defvar flymake-list-only-diagnostics)
(defvar flymake-timer)

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

(defconst ide-bridge--flymake-severities
  '((flymake-error . "error") (flymake-warning . "warning") (flymake-note . "info"))
  "How Flymake's categories are called by others.")

(cl-defmethod ide-bridge--answer (_link (_method (eql 'diagnostics))
                                        &key path &allow-other-keys)
  "What the checkers found in the file PATH, or in all files."
  (vconcat (if path (delq nil (list (ide-bridge--problems-of path)))
             (ide-bridge--all-problems))))

(defun ide-bridge--tell-diagnostics (&rest _)
  "Tell that the problems of the current buffer may be others now."
  (when-let ((path (and ide-bridge--links (ide-bridge--path (current-buffer)))))
    (ide-bridge--notify (ide-bridge--links-for path) 'diagnosticsChanged :paths (vector path))))

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

(defun ide-bridge--diagnostic (start end severity message source &optional code)
  "A problem from START to END with its SEVERITY, MESSAGE, SOURCE and CODE."
  (append (list :start start :end end :severity severity
                :message (string-trim (substring-no-properties message)))
          (and source (list :source (format "%s" source)))
          (and code (list :code (format "%s" code)))))


;;; Flymake

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


;;; Flycheck

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

(provide 'ide-bridge-diagnostics)
;;; ide-bridge-diagnostics.el ends here
