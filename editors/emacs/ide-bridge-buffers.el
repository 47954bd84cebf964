;;; ide-bridge-buffers.el --- Buffers, texts and places as ide-bridge tells them  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The ide_bridge authors

;; Author: The ide_bridge authors
;; URL: https://github.com/ide-bridge/ide-bridge
;; SPDX-License-Identifier: MIT

;; This file is not part of GNU Emacs.

;;; Commentary:

;; Which buffers others may know of, and how names, texts and places in them are
;; said: real names of local files, text that JSON can carry, lines and columns
;; from 0, counted in characters.
;;
;; It does not know the bridge.

;;; Code:

(require 'seq)
(require 'subr-x)

(declare-function evil-visual-range "ext:evil-states")
(declare-function evil-visual-state-p "ext:evil-states")

(defconst ide-bridge--unspeakable "[\ud800-\udfff\x3fff80-\x3fffff]"
  "Characters that JSON cannot carry: lone surrogates and undecodable bytes.")

(defconst ide-bridge--languages
  '((c++ . "cpp") (fundamental . "plaintext") (js . "javascript") (sh . "shellscript")
    (text . "plaintext"))
  "Languages whose common name is not that of their major mode.")

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

(defun ide-bridge--plain (text)
  "TEXT with nothing in it that could hide the rest, or show it in another order.
Such characters are shown as JSON would escape them; lines and tabs stay."
  (replace-regexp-in-string
   "[\0-\b\v-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
   (lambda (found) (format "\\u%04x" (aref found 0)))
   (or text "") t t))

(defun ide-bridge--one-line (text &optional width)
  "TEXT, made plain, on one line of at most WIDTH columns."
  (let ((line (string-trim (replace-regexp-in-string "[ \t\r\n]+" " " (or text "")))))
    (setq line (ide-bridge--plain line))
    (if width (truncate-string-to-width line width nil nil "…") line)))

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

(provide 'ide-bridge-buffers)
;;; ide-bridge-buffers.el ends here
