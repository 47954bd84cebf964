;;; ide-bridge-approval-view.el --- Looking at an approval before deciding it  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The ide_bridge authors

;; Author: The ide_bridge authors
;; URL: https://github.com/ide-bridge/ide-bridge
;; SPDX-License-Identifier: MIT

;; This file is not part of GNU Emacs.

;;; Commentary:

;; All that is known of an approval, in a buffer with the keys that decide it; what
;; an edit would change, as a diff; its input, to be changed before it is allowed;
;; and the questions of a session, answered in the minibuffer.
;;
;; It does not know which approvals are open, or what becomes of an answer.

;;; Code:

(require 'cl-lib)
(require 'diff-mode)
(require 'ide-bridge-approvals)
(require 'ide-bridge-buffers)
(require 'ide-bridge-diff-view)
(require 'json)
(require 'seq)
(require 'subr-x)

(defvar crm-separator)

(declare-function js-json-mode "js")

(defvar ide-bridge-approval-mode-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map ide-bridge-approval-keys-map)
    (define-key map "q" #'quit-window)
    map)
  "Keymap of the buffers that show one approval.")

(define-minor-mode ide-bridge-approval-mode
  "Minor mode of the buffers that show one approval.

\\{ide-bridge-approval-mode-map}"
  :lighter nil
  (setq header-line-format
        '(:eval (if (ide-bridge--approval-with ide-bridge--approval)
                    "a allows, A for the session, d denies, e edits, = shows the change, q leaves"
                  "This has been decided"))))

(defun ide-bridge--show-approval (approval name fill)
  "Show APPROVAL in a buffer called NAME, which FILL fills."
  (let ((buffer (get-buffer-create (format "*ide-bridge %s %s*" name (plist-get approval :id)))))
    (with-current-buffer buffer
      (let ((inhibit-read-only t))
        (special-mode)
        (erase-buffer)
        (funcall fill)
        (goto-char (point-min)))
      (setq buffer-read-only t
            ide-bridge--approval (plist-get approval :id)
            bidi-paragraph-direction 'left-to-right)
      (ide-bridge-approval-mode)
      ;; Diff mode's own keys for read-only buffers stand there too.
      (setq-local minor-mode-overriding-map-alist
                  (list (cons 'ide-bridge-approval-mode ide-bridge-approval-mode-map))))
    (pop-to-buffer buffer)))


;;; All of it

;;;###autoload
(defun ide-bridge-view-approval (approval)
  "Show all that is known of APPROVAL."
  (interactive (list (ide-bridge--this-approval "Look at: ")))
  (ide-bridge--show-approval approval "approval" (lambda () (insert (ide-bridge--described approval)))))

(defun ide-bridge--described (approval)
  "All that is known of APPROVAL, for a person."
  (concat (propertize (ide-bridge--approval-title approval) 'face 'bold) "\n\n"
          (ide-bridge--field "Session" (ide-bridge--short (plist-get approval :session)))
          (ide-bridge--field "Agent" (plist-get approval :agent))
          (ide-bridge--field "For" (plist-get approval :description))
          (ide-bridge--field "Asked because" (plist-get approval :reason))
          (ide-bridge--field "Path" (plist-get approval :blockedPath))
          "\n" (ide-bridge--describe-request approval)))

(defun ide-bridge--field (name text)
  "A line with the NAME of TEXT, or nothing."
  (if (string-empty-p (or text "")) ""
    (format "%s: %s\n" name (ide-bridge--one-line text))))

(defun ide-bridge--describe-request (approval)
  "What APPROVAL is about, in the words of its kind."
  (let ((input (plist-get approval :input)))
    (pcase (plist-get approval :kind)
      ("question" (mapconcat #'ide-bridge--describe-question (plist-get input :questions) "\n"))
      ((and "plan" (guard (stringp (plist-get input :plan))))
       (ide-bridge--plain (plist-get input :plan)))
      (_ (ide-bridge--describe-input input)))))

(defun ide-bridge--describe-question (question)
  "QUESTION and its options, for a person."
  (concat (ide-bridge--one-line (plist-get question :question)) "\n"
          (mapconcat (lambda (option)
                       (format "  - %s  %s\n" (ide-bridge--one-line (plist-get option :label))
                               (ide-bridge--one-line (plist-get option :description))))
                     (plist-get question :options) "")))

(defun ide-bridge--describe-input (input)
  "INPUT, a property list, one member after another."
  (cl-loop for (key value) on input by #'cddr
           for text = (ide-bridge--plain (if (stringp value) value (ide-bridge--pretty value)))
           concat (format "%s:%s\n" (substring (symbol-name key) 1)
                          (if (string-search "\n" text)
                              (concat "\n" (replace-regexp-in-string "^" "    " text))
                            (concat " " text)))))

(defun ide-bridge--pretty (value)
  "VALUE as JSON to be read by a person."
  (let ((json-encoding-pretty-print t)
        (json-null nil))
    (if value (json-encode value) "null")))


;;; What an edit would change

;;;###autoload
(defun ide-bridge-view-change (approval)
  "Show what the edit that waits for APPROVAL would change."
  (interactive (list (ide-bridge--this-approval "Show the change of: ")))
  (let* ((input (plist-get approval :input))
         (path (plist-get input :file_path))
         (now (and (stringp path) (ide-bridge--disk-text path)))
         (then (and (stringp path) (ide-bridge--text-after (plist-get approval :tool) input now))))
    (unless then
      (user-error "This is not an edit whose change could be shown"))
    (ide-bridge--show-approval
     approval "change" (lambda () (ide-bridge--insert-change path (or now "") then)))))

(defun ide-bridge--disk-text (path)
  "The text of the file PATH, or nil when there is none."
  (when (and (not (file-remote-p path)) (file-readable-p path) (file-regular-p path))
    (with-temp-buffer
      (insert-file-contents path)
      (buffer-string))))

(defun ide-bridge--text-after (tool input now)
  "The text that becomes of NOW by the TOOL with its INPUT, or nil if unknown."
  (pcase tool
    ("Write" (plist-get input :content))
    ("Edit" (and now (ide-bridge--edited now input)))
    ("MultiEdit" (seq-reduce (lambda (text edit) (and text (ide-bridge--edited text edit)))
                             (plist-get input :edits) now))))

(defun ide-bridge--edited (text edit)
  "TEXT after EDIT, or nil when it does not fit."
  (let* ((old (plist-get edit :old_string))
         (new (plist-get edit :new_string))
         (start (and (stringp old) (stringp new) (not (string-empty-p old))
                     (string-search old text))))
    (cond ((null start) nil)
          ((eq t (plist-get edit :replace_all)) (string-replace old new text))
          (t (concat (substring text 0 start) new (substring text (+ start (length old))))))))

(defun ide-bridge--insert-change (path now then)
  "Insert a diff of the file PATH from the text NOW to the text THEN."
  (let ((old (ide-bridge--write-temporary (ide-bridge--plain now)))
        (new (ide-bridge--write-temporary (ide-bridge--plain then)))
        (name (ide-bridge--one-line path))
        (coding-system-for-read 'utf-8-unix))
    (unwind-protect
        (call-process "diff" nil t nil "-u" "--label" name "--label" name old new)
      (ide-bridge--delete-temporary old new))
    (when (bobp)
      (insert "This changes nothing.\n"))
    (diff-mode)))


;;; With another input

(defvar ide-bridge-edit-approval-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'ide-bridge-allow-edited)
    (define-key map (kbd "C-c C-k") #'ide-bridge-leave-edited)
    map)
  "Keymap of the buffers in which the input of an approval is edited.")

(define-minor-mode ide-bridge-edit-approval-mode
  "Minor mode of the buffers in which the input of an approval is edited."
  :lighter nil
  (setq header-line-format
        (substitute-command-keys
         "\\<ide-bridge-edit-approval-mode-map>\\[ide-bridge-allow-edited] allows it with this \
input, \\[ide-bridge-leave-edited] leaves it open")))

;;;###autoload
(defun ide-bridge-edit-approval (approval)
  "Change what a session wants to do before it is allowed.
The input of APPROVAL is shown as JSON."
  (interactive (list (ide-bridge--this-approval "Edit: ")))
  (let* ((id (plist-get approval :id))
         (name (ide-bridge--edit-name id))
         (known (get-buffer name)))
    (with-current-buffer (get-buffer-create name)
      (unless known
        (insert (ide-bridge--plain (ide-bridge--pretty (or (plist-get approval :input)
                                                           (make-hash-table))))
                "\n")
        (goto-char (point-min))
        (ide-bridge--adopt-json)
        (set-buffer-modified-p nil)
        (setq buffer-undo-list nil
              ide-bridge--approval id)
        (ide-bridge-edit-approval-mode))
      (pop-to-buffer (current-buffer)))))

(defun ide-bridge--adopt-json ()
  "Give the current buffer the look of JSON; the user's hooks are for files."
  (let ((inhibit-message t))
    (delay-mode-hooks (if (fboundp 'js-json-mode) (js-json-mode) (js-mode)))
    (font-lock-mode 1)))

(defun ide-bridge-allow-edited ()
  "Allow what a session wants to do, with the input as it is in this buffer.
If the bridge does not want it so, the buffer is still there."
  (interactive)
  (let ((approval (or (ide-bridge--approval-with ide-bridge--approval)
                      (user-error "This has been decided")))
        (input (ide-bridge--read-input)))
    (ide-bridge--decide-approval approval "allow" :input input)
    (quit-window)))

(defun ide-bridge--read-input ()
  "The JSON object in the current buffer."
  (save-excursion
    (goto-char (point-min))
    (condition-case failure
        (let ((input (json-parse-buffer :null-object nil :false-object :json-false)))
          (skip-chars-forward " \t\r\n")
          (unless (and (hash-table-p input) (eobp))
            (user-error "The input must be one JSON object, and nothing else"))
          input)
      ((json-error json-parse-error)
       (user-error "This is no JSON: %s" (error-message-string failure))))))

(defun ide-bridge-leave-edited ()
  "Leave an approval open, and forget what was changed in its input."
  (interactive)
  (quit-window t))


;;; Questions

(defun ide-bridge--answer-question (approval)
  "Let the user answer what a session asks by APPROVAL."
  (let ((answers (make-hash-table :test 'equal)))
    (seq-do (lambda (question)
              (puthash (plist-get question :question) (ide-bridge--read-answer question) answers))
            (plist-get (plist-get approval :input) :questions))
    (ide-bridge--decide-approval approval "allow" :answers answers)))

(defun ide-bridge--read-answer (question)
  "Let the user answer QUESTION, by one of its options or in his own words."
  (let* ((options (append (plist-get question :options) nil))
         (labels (mapcar (lambda (option) (plist-get option :label)) options))
         (annotate (lambda (label)
                     (when-let ((option (seq-find (lambda (option)
                                                    (equal label (plist-get option :label)))
                                                  options)))
                       (concat "  " (ide-bridge--one-line (plist-get option :description) 80)))))
         (table (lambda (text fits action)
                  (if (eq action 'metadata)
                      `(metadata (annotation-function . ,annotate)
                                 (display-sort-function . identity))
                    (complete-with-action action labels text fits))))
         (prompt (concat (ide-bridge--one-line (plist-get question :question) 200) " ")))
    (if (eq t (plist-get question :multiSelect))
        (let ((crm-separator "[ \t]*;[ \t]*"))
          (vconcat (completing-read-multiple (concat prompt "(several with ;) ") table)))
      (completing-read prompt table nil nil nil nil (car labels)))))

(provide 'ide-bridge-approval-view)
;;; ide-bridge-approval-view.el ends here
