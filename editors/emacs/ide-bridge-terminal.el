;;; ide-bridge-terminal.el --- Claude in an Emacs terminal, already connected  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The ide_bridge authors

;; Author: The ide_bridge authors
;; URL: https://github.com/ide-bridge/ide-bridge
;; SPDX-License-Identifier: MIT

;; This file is not part of GNU Emacs.

;;; Commentary:

;; The CLI in vterm, eat or term, started by the bridge's program so that it is
;; connected from its first moment.
;;
;; It does not know what the CLI does there.

;;; Code:

(require 'ide-bridge-link)
(require 'ide-bridge-options)
(require 'seq)

(defvar term-escape-char)
(defvar vterm-shell)

(declare-function eat-make "ext:eat")
(declare-function term-char-mode "term")
(declare-function term-mode "term")
(declare-function term-set-escape-char "term")
(declare-function vterm-mode "ext:vterm")

(defvar-local ide-bridge--claude-folder nil
  "In a terminal with a CLI: the folder it was started for.")

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

(provide 'ide-bridge-terminal)
;;; ide-bridge-terminal.el ends here
