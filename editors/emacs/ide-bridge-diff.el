;;; ide-bridge-diff.el --- Proposed changes, decided in Emacs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The ide_bridge authors

;; Author: The ide_bridge authors
;; URL: https://github.com/ide-bridge/ide-bridge
;; SPDX-License-Identifier: MIT

;; This file is not part of GNU Emacs.

;;; Commentary:

;; A diff is offered by the bridge and stays until it is decided, here or
;; elsewhere.  At most one is on the screen; the others wait for their turn.
;; On the left is the text as it is now, on the right the proposed one; both are
;; buffers of their own that may be edited, and the right one is what is kept.
;;
;; It does not touch the visited file or its buffer: the client writes the file.

;;; Code:

(require 'cl-lib)
(require 'ide-bridge-buffers)
(require 'ide-bridge-link)
(require 'ide-bridge-options)
(require 'seq)
(require 'subr-x)

(declare-function ediff-really-quit "ediff-util")

(autoload 'ide-bridge--show-ediff "ide-bridge-diff-view")
(autoload 'ide-bridge--show-unified "ide-bridge-diff-view")
(autoload 'ide-bridge--explain "ide-bridge-diff-view" nil t)

(defconst ide-bridge--ediff-limit 1000000
  "Texts of more characters are shown as a unified diff; Ediff would take too long.")

(defconst ide-bridge--pause 0.3
  "Seconds without a key after which a window may appear under the user's hands.")

(cl-defstruct (ide-bridge--diff (:constructor ide-bridge--make-diff) (:copier nil))
  "A proposed change.
CONTENTS is the proposed text, or FILE has it.  NOW and PROPOSED are the
buffers of both sides once they were needed.  While it is on the screen,
VIEW is the buffer that controls it, and WINDOWS what was there before."
  link id path title contents file now proposed view windows)

(defvar ide-bridge--diffs nil
  "The diffs to be decided, oldest first.")

(defvar ide-bridge--shown nil
  "The diff that is on the screen, decided or not.")

(defvar ide-bridge--turn nil
  "The timer that waits until a diff may be shown.")

(defvar-local ide-bridge--diff nil
  "In a buffer that shows a diff: which one.")

(defun ide-bridge--diffs-of (link)
  "The undecided diffs of LINK."
  (seq-filter (lambda (diff) (eq link (ide-bridge--diff-link diff))) ide-bridge--diffs))

(defun ide-bridge--close-all (link)
  "Clear away the diffs of LINK, which has ended."
  (mapc #'ide-bridge--close (ide-bridge--diffs-of link)))

(add-hook 'ide-bridge--ended-functions #'ide-bridge--close-all)

(defun ide-bridge--diff-with (link id)
  "The undecided diff of LINK with the number ID, or nil."
  (seq-find (lambda (diff) (eql id (ide-bridge--diff-id diff))) (ide-bridge--diffs-of link)))

(defun ide-bridge--diff-name (diff)
  "The short name of the file that DIFF would change."
  (let ((path (ide-bridge--diff-path diff))
        (link (ide-bridge--diff-link diff)))
    (if (ide-bridge--holds link path)
        (file-relative-name path (ide-bridge--folder link))
      (abbreviate-file-name path))))


;;; Offered, shown, cleared away

(cl-defmethod ide-bridge--answer (link (_method (eql 'showDiff))
                                       &key diff path title contents contentsFile
                                       &allow-other-keys)
  "Offer on LINK to change PATH to CONTENTS, or to those of CONTENTSFILE.
DIFF is the number of this change, TITLE the name the client gave it."
  (ide-bridge--offer (ide-bridge--make-diff :link link :id diff :path path :title title
                                            :contents contents :file contentsFile))
  (make-hash-table))

(cl-defmethod ide-bridge--answer (link (_method (eql 'closeDiff)) &key diff &allow-other-keys)
  "Take DIFF of LINK off the screen; it was decided elsewhere."
  (when-let ((known (ide-bridge--diff-with link diff)))
    (ide-bridge--close known))
  (make-hash-table))

(defun ide-bridge--offer (diff)
  "Let the user decide DIFF, as soon as he can look at it.
A bridge that had to be restarted offers its diffs again; what the user
has done to one of them meanwhile is not thrown away."
  (let ((known (ide-bridge--diff-with (ide-bridge--diff-link diff) (ide-bridge--diff-id diff))))
    (unless (and known (ide-bridge--same-offer-p known diff))
      (when known
        (ide-bridge--close known))
      (setq ide-bridge--diffs (append ide-bridge--diffs (list diff)))
      (run-hook-with-args 'ide-bridge-diff-opened-functions (ide-bridge--diff-path diff))
      (force-mode-line-update t)))
  (ide-bridge--show-soon 0))

(defun ide-bridge--same-offer-p (one other)
  "Whether the diffs ONE and OTHER propose the same."
  (and (ide-bridge--diff-contents one)
       (equal (ide-bridge--diff-path one) (ide-bridge--diff-path other))
       (equal (ide-bridge--diff-contents one) (ide-bridge--diff-contents other))))

(defun ide-bridge--show-soon (seconds)
  "In SECONDS, look whether a diff may be shown."
  (when ide-bridge--turn
    (cancel-timer ide-bridge--turn))
  (setq ide-bridge--turn (run-with-timer seconds nil #'ide-bridge--show-next)))

(defun ide-bridge--show-next ()
  "Show the oldest diff when the screen is free and the user's hands are still.
A key meant for a file would otherwise reach Ediff, and decide something."
  (setq ide-bridge--turn nil)
  (when (and ide-bridge--diffs (not ide-bridge--shown))
    (if (ide-bridge--may-show-p)
        (ide-bridge--show (car ide-bridge--diffs))
      (ide-bridge--show-soon ide-bridge--pause))))

(defun ide-bridge--may-show-p ()
  "Whether a window may appear now."
  (let ((idle (current-idle-time)))
    (and idle
         (time-less-p ide-bridge--pause idle)
         (not (active-minibuffer-window))
         (not (bound-and-true-p isearch-mode))
         (not executing-kbd-macro)
         (zerop (length (this-single-command-keys))) ; no prefix key is waiting
         (ide-bridge--frame))))

(defun ide-bridge--frame ()
  "A frame that somebody can see, or nil; the selected one if possible."
  (let ((frame (or (frame-parent) (selected-frame))))
    (seq-find (lambda (frame)
                (and (not (and (daemonp) (eq frame terminal-frame)))
                     (frame-visible-p frame)
                     (not (eq 'only (frame-parameter frame 'minibuffer)))))
              (cons frame (frame-list)))))

(defun ide-bridge--show (diff &optional view)
  "Put DIFF on the screen, in the given VIEW or the preferred one."
  (select-frame (ide-bridge--frame) t)
  (setf (ide-bridge--diff-windows diff) (current-window-configuration))
  (setq ide-bridge--shown diff)
  (if (eq 'ediff (or view (and (ide-bridge--large-p diff) 'unified) ide-bridge-diff-view))
      (ide-bridge--show-ediff diff)
    (ide-bridge--show-unified diff)))

(defun ide-bridge--large-p (diff)
  "Whether one side of DIFF is too large for Ediff."
  (cl-flet ((size (file) (or (and file (file-attribute-size (file-attributes file))) 0)))
    (< ide-bridge--ediff-limit
       (max (length (ide-bridge--diff-contents diff))
            (size (ide-bridge--diff-file diff))
            (size (ide-bridge--diff-path diff))))))

(defun ide-bridge--hide (diff)
  "Take DIFF off the screen, undecided, and put the windows back.
If it is not to be seen any more, the user has arranged his windows anew;
then they stay as they are, whatever Ediff does when it quits."
  (when-let ((view (ide-bridge--diff-view diff)))
    (let ((windows (if (ide-bridge--seen-p diff)
                       (ide-bridge--diff-windows diff)
                     (current-window-configuration))))
      (setf (ide-bridge--diff-view diff) nil)
      (when (buffer-live-p view)
        ;; A user's hook that fails must not leave the client waiting.
        (with-demoted-errors "ide-bridge: %S"
          (with-current-buffer view
            (if (derived-mode-p 'ediff-mode)
                (ediff-really-quit nil)
              (kill-buffer view)))))
      (when (frame-live-p (window-configuration-frame windows))
        (set-window-configuration windows))))
  (when (eq diff ide-bridge--shown)
    (setq ide-bridge--shown nil)))

(defun ide-bridge--seen-p (diff)
  "Whether DIFF is in a window of the frame where it was shown."
  (let ((frame (window-configuration-frame (ide-bridge--diff-windows diff))))
    (and (frame-live-p frame)
         (seq-some (lambda (buffer) (and (buffer-live-p buffer) (get-buffer-window buffer frame)))
                   (list (ide-bridge--diff-view diff) (ide-bridge--diff-proposed diff))))))

(defun ide-bridge--close (diff)
  "Forget DIFF, which is decided, and clear it away."
  (setq ide-bridge--diffs (delq diff ide-bridge--diffs))
  (force-mode-line-update t)
  (ide-bridge--clear-away diff))

(defun ide-bridge--clear-away (diff)
  "Take DIFF off the screen and make room for the next.
While the user answers a question, windows are not touched."
  (if (active-minibuffer-window)
      (run-with-timer ide-bridge--pause nil #'ide-bridge--clear-away diff)
    (ide-bridge--hide diff)
    (dolist (buffer (list (ide-bridge--diff-now diff) (ide-bridge--diff-proposed diff)))
      (when (buffer-live-p buffer)
        (kill-buffer buffer)))
    (ide-bridge--show-soon 0)))


;;; Both sides

(defun ide-bridge--make-side (diff label fill)
  "Make a buffer for one side of DIFF, named by LABEL and filled by FILL."
  (let* ((path (ide-bridge--diff-path diff))
         (folder (ide-bridge--folder (ide-bridge--diff-link diff))))
    (with-current-buffer (generate-new-buffer
                          (format "%s (%s)" (ide-bridge--diff-name diff) label))
      (setq default-directory (file-name-as-directory folder))
      (setq-local buffer-file-coding-system 'utf-8-unix)
      (funcall fill)
      (goto-char (point-min))
      (ide-bridge--adopt-mode path)
      (setq ide-bridge--diff diff
            buffer-undo-list nil)
      (set-buffer-modified-p nil)
      (current-buffer))))

(defun ide-bridge--adopt-mode (path)
  "Give the current buffer the look of PATH.
The text does not choose the mode, since it may be anybody's, and the
user's hooks are not run: no file is visited here."
  (let ((visiting (ide-bridge--buffer path))
        (mode (assoc-default path auto-mode-alist #'string-match)))
    (when visiting
      (setq mode (buffer-local-value 'major-mode visiting)))
    (when (and (symbolp mode) (fboundp mode))
      (autoload-do-load (symbol-function mode) mode)
      (when (provided-mode-derived-p mode 'prog-mode 'text-mode 'conf-mode)
        (let ((coding buffer-file-coding-system))
          (let ((inhibit-message t))
            (with-demoted-errors "ide-bridge: %S"
              (delay-mode-hooks (funcall mode))))
          (setq-local buffer-file-coding-system coding))
        (font-lock-mode 1)))))

(defun ide-bridge--now (diff)
  "The buffer with the text that DIFF would change, saved or not."
  (let* ((path (ide-bridge--diff-path diff))
         (visiting (ide-bridge--buffer path)))
    (if (buffer-live-p (ide-bridge--diff-now diff))
        (ide-bridge--diff-now diff)
      (setf (ide-bridge--diff-now diff)
            (ide-bridge--make-side
             diff (if (and visiting (buffer-modified-p visiting)) "unsaved" "now")
             (lambda ()
               (cond (visiting (insert (with-current-buffer visiting
                                         (save-restriction (widen) (buffer-substring-no-properties
                                                                    (point-min) (point-max))))))
                     ((file-exists-p path) (insert-file-contents path)))))))))

(defun ide-bridge--proposed (diff)
  "The buffer with the text that DIFF proposes."
  (if (buffer-live-p (ide-bridge--diff-proposed diff))
      (ide-bridge--diff-proposed diff)
    (let ((buffer (ide-bridge--make-side diff "proposed"
                                         (lambda () (ide-bridge--insert-proposed diff)))))
      (with-current-buffer buffer
        (ide-bridge-diff-mode)
        (add-hook 'kill-buffer-hook #'ide-bridge--reject-killed nil t))
      (setf (ide-bridge--diff-proposed diff) buffer))))

(defun ide-bridge--insert-proposed (diff)
  "Insert the text that DIFF proposes; the buffer remembers CR LF line ends."
  (if (ide-bridge--diff-file diff)
      (let ((coding-system-for-read 'utf-8-unix))
        (insert-file-contents (ide-bridge--diff-file diff)))
    (insert (ide-bridge--diff-contents diff)))
  (goto-char (point-min))
  (when (and (search-forward "\r\n" nil t)
             (progn (goto-char (point-min))
                    (not (re-search-forward "\\(?:\\`\\|[^\r]\\)\n" nil t))))
    (setq-local buffer-file-coding-system 'utf-8-dos)
    (while (search-forward "\r\n" nil t)
      (replace-match "\n" t t))))

(defun ide-bridge--reject-killed ()
  "Reject the diff whose buffer is being killed, unless it was decided before."
  (when (memq ide-bridge--diff ide-bridge--diffs)
    (ide-bridge--decide ide-bridge--diff 'rejected)))

(defvar ide-bridge-diff-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'ide-bridge-accept)
    (define-key map (kbd "C-c C-k") #'ide-bridge-reject)
    (define-key map [remap save-buffer] #'ide-bridge-accept)
    map)
  "Keys for deciding a proposed change.")

(define-minor-mode ide-bridge-diff-mode
  "Minor mode of the buffers in which a proposed change is decided."
  :lighter nil
  (setq header-line-format
        (substitute-command-keys
         "Proposed: \\<ide-bridge-diff-mode-map>\\[ide-bridge-accept] keeps, \
\\[ide-bridge-reject] rejects")))


;;; Deciding

(defun ide-bridge--decide (diff decision)
  "Tell that the user's DECISION about DIFF is `kept' or `rejected'."
  (unless (memq diff ide-bridge--diffs)
    (user-error "This change has been decided elsewhere"))
  (apply #'ide-bridge--notify (list (ide-bridge--diff-link diff)) 'diffDecided
         :diff (ide-bridge--diff-id diff) :decision (symbol-name decision)
         (and (eq decision 'kept) (ide-bridge--handed-over (ide-bridge--kept diff))))
  (ide-bridge--close diff)
  (message "%s the change of %s" (capitalize (symbol-name decision)) (ide-bridge--diff-name diff))
  (run-hook-with-args 'ide-bridge-diff-decided-functions (ide-bridge--diff-path diff) decision))

(defun ide-bridge--kept (diff)
  "The text of DIFF to be kept, as parameters."
  (let ((proposed (ide-bridge--diff-proposed diff)))
    (cond ((buffer-live-p proposed) (list :contents (ide-bridge--contents proposed)))
          ((ide-bridge--diff-file diff) (list :contentsFile (ide-bridge--diff-file diff)))
          (t (list :contents (ide-bridge--diff-contents diff))))))

(defun ide-bridge--handed-over (kept)
  "KEPT, with a file of our own if it has one, for the bridge to take and delete."
  (if-let ((file (plist-get kept :contentsFile))
           (own (make-temp-file "ide-bridge-kept-")))
      (progn (copy-file file own t)
             (list :contentsFile own))
    kept))

(defun ide-bridge--this-diff ()
  "The diff that a command means: the one looked at, the only one, or a chosen one."
  (or (and (memq ide-bridge--diff ide-bridge--diffs) ide-bridge--diff)
      (and (null (cdr ide-bridge--diffs)) (car ide-bridge--diffs))
      (ide-bridge--choose-diff)))

(defun ide-bridge--choose-diff ()
  "Let the user choose one of the diffs."
  (unless ide-bridge--diffs
    (user-error "No change is proposed"))
  (let ((choices (seq-map (lambda (diff)
                            (cons (format "%s (%s)" (ide-bridge--diff-name diff)
                                          (ide-bridge--diff-id diff))
                                  diff))
                          ide-bridge--diffs)))
    (cdr (assoc (completing-read "Proposed change: " choices nil t) choices))))

;;;###autoload
(defun ide-bridge-accept ()
  "Keep the proposed change, with what you have changed in it."
  (interactive)
  (ide-bridge--decide (ide-bridge--this-diff) 'kept))

;;;###autoload
(defun ide-bridge-reject ()
  "Reject the proposed change."
  (interactive)
  (ide-bridge--decide (ide-bridge--this-diff) 'rejected))

(defun ide-bridge-quit-diff ()
  "Ask whether to keep the proposed change, and be done with it."
  (interactive)
  (let ((diff (ide-bridge--this-diff)))
    (ide-bridge--decide diff (if (y-or-n-p (format "Keep the change of %s? "
                                                   (ide-bridge--diff-name diff)))
                                 'kept
                               'rejected))))

(defun ide-bridge-edit-diff ()
  "Show the proposed change in Ediff, where it can be edited."
  (interactive)
  (let ((diff (ide-bridge--this-diff)))
    (ide-bridge--hide diff)
    (ide-bridge--show diff 'ediff)))

;;;###autoload
(defun ide-bridge-show-diff ()
  "Show a proposed change that is not on the screen, in place of one that is."
  (interactive)
  (let ((diff (if (cdr ide-bridge--diffs) (ide-bridge--choose-diff) (ide-bridge--this-diff))))
    (when ide-bridge--shown
      (ide-bridge--hide ide-bridge--shown))
    (ide-bridge--show diff)))

(provide 'ide-bridge-diff)
;;; ide-bridge-diff.el ends here
