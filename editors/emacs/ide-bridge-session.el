;;; ide-bridge-session.el --- A session of Claude, shown in a buffer  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The ide_bridge authors

;; Author: The ide_bridge authors
;; URL: https://github.com/ide-bridge/ide-bridge
;; SPDX-License-Identifier: MIT

;; This file is not part of GNU Emacs.

;;; Commentary:

;; A session has a buffer of its own, in which its events are written down as they
;; come: what was asked, what is said, which tools are used and what came of them,
;; and what waits for an approval.  Events are collected for a moment and written
;; together, so that a thousand in a second do not hold up the user; the oldest text
;; goes when there is too much.
;;
;; It does not know how a session is asked for, or what the bridge is.

;;; Code:

(require 'ide-bridge-approval-view)
(require 'ide-bridge-approvals)
(require 'ide-bridge-buffers)
(require 'seq)
(require 'subr-x)

(declare-function evil-set-initial-state "ext:evil-core")

(autoload 'ide-bridge-ask "ide-bridge-ask" nil t)
(autoload 'ide-bridge-interrupt "ide-bridge-ask" nil t)
(autoload 'ide-bridge-sessions "ide-bridge-sessions" nil t)

(defconst ide-bridge--session-limit 1000000
  "So many characters of a session are kept in its buffer.")

(defconst ide-bridge--batch-seconds 0.05
  "Events are collected for so long before they are written down.")

(defconst ide-bridge--batch-limit 2000
  "So many events are written down without waiting any longer.")

(defface ide-bridge-prompt '((t :inherit minibuffer-prompt :weight bold))
  "What was asked in a session."
  :group 'ide-bridge)

(defface ide-bridge-tool '((t :inherit font-lock-function-name-face))
  "The use of a tool in a session."
  :group 'ide-bridge)

(defface ide-bridge-code '((t :inherit (fixed-pitch font-lock-constant-face)))
  "Code in what a session says."
  :group 'ide-bridge)

(defface ide-bridge-heading '((t :inherit (font-lock-keyword-face bold)))
  "A heading in what a session says."
  :group 'ide-bridge)

(defvar-local ide-bridge--session nil
  "The id of the session that this buffer shows.")

(defvar-local ide-bridge--session-link nil
  "The link through which the session is watched; nil when it is not.")

(defvar-local ide-bridge--session-bridge nil
  "The process id of the bridge that this session was watched through.")

(defvar-local ide-bridge--session-folder nil
  "The folder whose bridge has the session.")

(defvar-local ide-bridge--session-title ""
  "What the session is about.")

(defvar-local ide-bridge--session-state "starting"
  "What the session is doing, as the bridge calls it.")

(defvar-local ide-bridge--session-heard nil
  "When the last event came.")

(defvar-local ide-bridge--queue nil
  "The events that are not written down yet, newest first.")

(defvar-local ide-bridge--queued 0
  "How many events are not written down yet.")

(defvar-local ide-bridge--queue-timer nil
  "The timer that will write down what has come.")

(defvar-local ide-bridge--piece nil
  "Where the block begins that is just being said, or nil.")

(defvar-local ide-bridge--items nil
  "Where the tools and approvals are that will have a result: markers by id.")

(defvar ide-bridge--session-buffers (make-hash-table :test 'equal)
  "The buffers of the sessions, by id.")


;;; The buffer

(defvar ide-bridge-session-mode-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map (make-composed-keymap ide-bridge-approval-keys-map special-mode-map))
    (define-key map (kbd "RET") #'ide-bridge-ask)
    (define-key map "i" #'ide-bridge-ask)
    (define-key map "g" #'ide-bridge-sessions)
    (define-key map (kbd "TAB") #'ide-bridge-toggle)
    (define-key map (kbd "C-c C-c") #'ide-bridge-interrupt)
    map)
  "Keymap of the buffers that show a session.")

(define-derived-mode ide-bridge-session-mode special-mode "Session"
  "A session of Claude: what was asked, what it says and does, and what it wants.

\\{ide-bridge-session-mode-map}"
  (setq buffer-undo-list t
        bidi-paragraph-direction 'left-to-right
        word-wrap t
        truncate-lines nil
        ide-bridge--items (make-hash-table :test 'equal)
        header-line-format '(:eval (ide-bridge--session-header))
        mode-line-process '(:eval (concat ":" ide-bridge--session-state)))
  (setq-local bidi-inhibit-bpa t)
  (add-to-invisibility-spec '(ide-bridge-folded . t))
  (add-hook 'kill-buffer-hook #'ide-bridge--forget-session nil t)
  (when (fboundp 'evil-set-initial-state)
    (evil-set-initial-state 'ide-bridge-session-mode 'emacs)))

(defun ide-bridge--session-buffer (id)
  "The buffer of the session ID, made if there is none."
  (let ((buffer (gethash id ide-bridge--session-buffers)))
    (if (buffer-live-p buffer) buffer
      (with-current-buffer (generate-new-buffer
                            (format "*ide-bridge session %s*" (ide-bridge--short id)))
        (ide-bridge-session-mode)
        (setq ide-bridge--session id)
        (puthash id (current-buffer) ide-bridge--session-buffers)))))

(defun ide-bridge--forget-session ()
  "Forget the session of the current buffer, which is being killed."
  (when ide-bridge--queue-timer
    (cancel-timer ide-bridge--queue-timer))
  (remhash ide-bridge--session ide-bridge--session-buffers))

(defun ide-bridge--session-header ()
  "The header line of the current buffer."
  (let ((open (length (ide-bridge--approvals-of ide-bridge--session))))
    (string-replace
     "%" "%%"
     (concat " " (ide-bridge--state-in-words open)
             (if (string-empty-p ide-bridge--session-title) ""
               (concat " · " (ide-bridge--one-line ide-bridge--session-title 60)))
             (propertize (if (zerop open) " · RET asks, h helps"
                           " · a allows, A for the session, d denies, e edits, = diff")
                         'face 'shadow)))))

(defun ide-bridge--state-in-words (open)
  "What the session is doing, when OPEN approvals wait."
  (pcase ide-bridge--session-state
    ((guard (< 0 open)) (propertize (if (= 1 open) "waiting for you" (format "waiting for you (%d)" open))
                                    'face 'warning))
    ("waiting" (propertize "waiting for you" 'face 'warning))
    ("working" (propertize "working…" 'face 'success))
    ("starting" "starting…")
    ("lost" (propertize "lost" 'face 'error))
    (state state)))


;;; Events

(defun ide-bridge--session-hear (buffer event)
  "Write down EVENT in BUFFER, soon."
  (with-current-buffer buffer
    (push event ide-bridge--queue)
    (setq ide-bridge--queued (1+ ide-bridge--queued)
          ide-bridge--session-heard (float-time))
    (cond ((< ide-bridge--batch-limit ide-bridge--queued) (ide-bridge--write-down buffer))
          ((null ide-bridge--queue-timer)
           (setq ide-bridge--queue-timer
                 (run-with-timer ide-bridge--batch-seconds nil
                                 #'ide-bridge--write-down buffer))))))

(defun ide-bridge--write-down (buffer)
  "Write down all events that have come for BUFFER."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (when ide-bridge--queue-timer
        (cancel-timer ide-bridge--queue-timer))
      (let ((events (nreverse ide-bridge--queue))
            (followers (ide-bridge--followers))
            (at-end (eobp))
            (inhibit-read-only t))
        (setq ide-bridge--queue nil
              ide-bridge--queued 0
              ide-bridge--queue-timer nil)
        (save-excursion
          (dolist (event events)
            (with-demoted-errors "ide-bridge: %S"
              (ide-bridge--write event)))
          (ide-bridge--trim))
        (when at-end (goto-char (point-max)))
        (dolist (window followers) (set-window-point window (point-max)))
        (set-buffer-modified-p nil)
        (force-mode-line-update)))))

(defun ide-bridge--followers ()
  "The windows that show the end of the current buffer."
  (seq-filter (lambda (window) (= (window-point window) (point-max)))
              (get-buffer-window-list nil nil t)))

(defun ide-bridge--write (event)
  "Write down EVENT in the current buffer, if its kind is known."
  (let ((text (plist-get event :text)))
    (pcase (plist-get event :kind)
      ("prompt" (ide-bridge--write-prompt text (plist-get event :by)))
      ("text" (ide-bridge--write-piece text))
      ("said" (ide-bridge--write-said text (plist-get event :agent)))
      ("thinking" (ide-bridge--write-folded "✻ thought" (concat "\n" text) 'shadow))
      ("tool" (ide-bridge--write-tool event))
      ("toolResult" (ide-bridge--write-result event))
      ("approval" (ide-bridge--write-approval (plist-get event :approval)))
      ("approvalClosed" (ide-bridge--write-outcome event))
      ("state" (ide-bridge--write-state (plist-get event :state) text))
      ("result" (ide-bridge--write-end event))
      ("notice" (ide-bridge--write-line (ide-bridge--one-line text)
                                        (pcase (plist-get event :level)
                                          ("error" 'error) ("warning" 'warning) (_ 'shadow))))
      ("ended" (unless (string-empty-p (or text ""))
                 (ide-bridge--write-line (ide-bridge--one-line text) 'error))))))

(defun ide-bridge--write-prompt (text by)
  "Write down that TEXT was asked by BY."
  (let ((lines (split-string (string-trim text) "\n")))
    (ide-bridge--open-gap)
    (ide-bridge--write-folded
     (concat "❯ " (if (member by '(nil "" "Emacs")) "" (format "(%s) " (ide-bridge--one-line by 30)))
             (string-join (seq-take lines 6) "\n"))
     (and (nthcdr 6 lines) (concat "\n" (string-join (nthcdr 6 lines) "\n")))
     'ide-bridge-prompt)
    (ide-bridge--open-gap)))

(defun ide-bridge--write-piece (text)
  "Write down TEXT, a piece of what is being said."
  (unless (string-empty-p text)
    (unless ide-bridge--piece
      (ide-bridge--open-gap)
      (setq ide-bridge--piece (copy-marker (point-max))))
    (goto-char (point-max))
    (insert text)
    ;; Whatever else is written meanwhile comes before the block, which goes on at the end.
    (set-marker-insertion-type ide-bridge--piece t)))

(defun ide-bridge--write-said (text agent)
  "Write down TEXT, a whole block, in place of its pieces.
What an AGENT said came without any."
  (cond (agent (ide-bridge--open-gap)
               (ide-bridge--insert (replace-regexp-in-string "^" "  " (string-trim text)) nil))
        (t (let ((start (copy-marker (or ide-bridge--piece
                                         (progn (ide-bridge--open-gap) (point))))))
             (unless (equal text (buffer-substring-no-properties start (point-max)))
               (delete-region start (point-max))
               (goto-char start)
               (insert text))
             (ide-bridge--decorate start (point-max))
             (set-marker start nil)
             (ide-bridge--close-piece)))))

(defun ide-bridge--close-piece ()
  "What was being said is said, or will not be any more."
  (setq ide-bridge--piece nil)
  (goto-char (point-max))
  (unless (bolp) (insert "\n")))

(defun ide-bridge--write-tool (event)
  "Write down that a tool is used, from EVENT."
  (let ((start (ide-bridge--write-folded
                (concat (if (plist-get event :agent) "  ● " "● ")
                        (ide-bridge--one-line (plist-get event :title) 200))
                (concat "\n" (ide-bridge--cut (ide-bridge--indented
                                               (ide-bridge--describe-input (plist-get event :input)))))
                'ide-bridge-tool)))
    ;; The result of the tool before this one goes between the two.
    (set-marker-insertion-type start t)
    (puthash (plist-get event :id) (cons start (point-marker)) ide-bridge--items)))

(defun ide-bridge--write-result (event)
  "Write down what came of a tool, from EVENT."
  (when-let ((place (gethash (plist-get event :id) ide-bridge--items)))
    (remhash (plist-get event :id) ide-bridge--items)
    (let* ((ok (eq t (plist-get event :ok)))
           (lines (split-string (string-trim-right (or (plist-get event :text) "")) "\n"))
           (face (if ok 'shadow 'error)))
      (when (search-forward "●" (progn (goto-char (car place)) (line-end-position)) t)
        (replace-match (propertize (if ok "✓" "✗") 'face (if ok 'success 'error)) t t))
      (goto-char (cdr place))
      (unless (equal lines '(""))
        (ide-bridge--fold (concat "    " (car lines))
                          (and (cdr lines)
                               (concat "\n" (ide-bridge--indented (string-join (cdr lines) "\n"))))
                          face))
      (set-marker (car place) nil)
      (set-marker (cdr place) nil))))

(defun ide-bridge--write-approval (approval)
  "Write down that APPROVAL is asked for."
  (let ((id (plist-get approval :id))
        (start (ide-bridge--write-line (concat "? " (ide-bridge--approval-title approval 200))
                                       'warning)))
    (dolist (text (list (plist-get approval :description) (plist-get approval :reason)))
      (unless (or (string-empty-p (or text ""))
                  (equal text (plist-get (plist-get approval :input) :description)))
        (ide-bridge--insert (concat "    " (ide-bridge--one-line text)) 'shadow)))
    (let ((request (string-trim-right (ide-bridge--describe-request approval))))
      (unless (string-empty-p request)
        (ide-bridge--insert (ide-bridge--cut (ide-bridge--indented request)) nil)))
    (let ((last (point-marker)))
      (ide-bridge--insert "    a allows, A for the session, d denies, e edits, = shows the change" 'shadow)
      (put-text-property start (point) 'ide-bridge-approval id)
      (puthash id (cons start last) ide-bridge--items))))

(defun ide-bridge--write-outcome (event)
  "Write down how an approval was decided, from EVENT."
  (when-let ((place (gethash (plist-get event :approval) ide-bridge--items)))
    (remhash (plist-get event :approval) ide-bridge--items)
    (goto-char (cdr place))
    (delete-region (point) (min (point-max) (1+ (line-end-position))))
    (insert (propertize (concat "    " (ide-bridge--outcome (plist-get event :outcome)
                                                            (plist-get event :by)
                                                            (plist-get event :reason))
                                "\n")
                        'face (if (equal "allowed" (plist-get event :outcome)) 'success 'warning)))))

(defun ide-bridge--write-state (state text)
  "Write down that the session is in another STATE, and the TEXT about it if any."
  (setq ide-bridge--session-state state)
  (when (member state '("lost" "stopped"))
    (ide-bridge--close-approvals)
    (ide-bridge--close-piece))
  (pcase state
    ("lost" (ide-bridge--write-line
             (or text "The session is lost; RET asks again, and it goes on.") 'error))
    ("stopped" (ide-bridge--write-line "The session has ended; RET asks again, and it goes on."
                                       'shadow))))

(defun ide-bridge--close-approvals ()
  "Write down that nothing in the current buffer can be approved any more."
  (maphash (lambda (id place)
             (when (equal id (get-text-property (car place) 'ide-bridge-approval))
               (ide-bridge--write-outcome (list :approval id :outcome "withdrawn"))))
           ide-bridge--items))

(defun ide-bridge--write-end (event)
  "Write down the end of a turn, from EVENT."
  (ide-bridge--close-piece)
  (let ((cost (plist-get event :cost))
        (seconds (plist-get event :seconds)))
    (ide-bridge--write-line
     (concat "── "
             (if (eq t (plist-get event :ok)) "done"
               (ide-bridge--one-line (if (string-empty-p (or (plist-get event :reason) ""))
                                         (or (plist-get event :text) "failed")
                                       (plist-get event :reason))
                                     200))
             (if (numberp seconds) (format ", %.1f s" seconds) "")
             (if (numberp cost) (format ", $%.4f" cost) ""))
     (if (eq t (plist-get event :ok)) 'shadow 'error))))


;;; Text

(defun ide-bridge--go-to-end ()
  "Go to where the next line is written: before the block that is being said."
  (goto-char (or ide-bridge--piece (point-max)))
  (unless (bolp) (insert "\n")))

(defun ide-bridge--open-gap ()
  "Leave an empty line before what comes next."
  (ide-bridge--go-to-end)
  (unless (or (bobp) (eq ?\n (char-before (1- (point)))))
    (insert "\n")))

(defun ide-bridge--insert (text face)
  "Insert TEXT with FACE and the end of a line."
  (insert (propertize text 'face face) "\n"))

(defun ide-bridge--write-line (text face)
  "Write TEXT with FACE on a line of its own; return a marker of its beginning."
  (ide-bridge--go-to-end)
  (prog1 (point-marker)
    (ide-bridge--insert text face)))

(defun ide-bridge--write-folded (text more face)
  "Write TEXT with FACE, and MORE to be unfolded; return where it begins."
  (ide-bridge--go-to-end)
  (prog1 (point-marker)
    (ide-bridge--fold text more face)))

(defun ide-bridge--fold (text more face)
  "Insert TEXT with FACE, and MORE that can be unfolded."
  (insert (propertize text 'face face))
  (when more
    (insert (propertize (string-trim-right more) 'face (if (eq face 'error) face 'shadow)
                        'invisible 'ide-bridge-folded 'ide-bridge-fold (list t))))
  (insert "\n"))

(defun ide-bridge-toggle ()
  "Show what is folded on this line, or fold it."
  (interactive)
  (let* ((position (if (get-text-property (point) 'ide-bridge-fold) (point)
                     (next-single-property-change (line-beginning-position) 'ide-bridge-fold nil
                                                  (1+ (line-end-position)))))
         (fold (and (< position (point-max)) (get-text-property position 'ide-bridge-fold)))
         (inhibit-read-only t))
    (unless fold
      (user-error "Nothing is folded here"))
    (let ((start (if (eq fold (get-text-property (max (point-min) (1- position)) 'ide-bridge-fold))
                     (previous-single-property-change position 'ide-bridge-fold nil (point-min))
                   position))
          (end (next-single-property-change position 'ide-bridge-fold nil (point-max))))
      (with-silent-modifications
        (put-text-property start end 'invisible
                           (unless (get-text-property start 'invisible) 'ide-bridge-folded)))
      (when (invisible-p (point))
        (goto-char start)))))

(defun ide-bridge--indented (text)
  "TEXT with its lines indented."
  (replace-regexp-in-string "^" "    " text))

(defun ide-bridge--cut (text)
  "TEXT, or as much of it as can be read in passing."
  (if (< (length text) 4000) text
    (concat (substring text 0 4000) "…")))

(defun ide-bridge--decorate (start end)
  "Give what is said from START to END, mostly Markdown, faces."
  (when (< (- end start) 100000)
    (pcase-dolist (`(,pattern ,group ,face)
                   '(("^#+ .*$" 0 ide-bridge-heading)
                     ("\\*\\*\\([^*\n]+\\)\\*\\*" 1 bold)
                     ("`\\([^`\n]+\\)`" 1 ide-bridge-code)
                     ("^ *```[^`\n]*\n\\(\\(?:.*\n\\)*?\\) *```[ \t]*$" 1 ide-bridge-code)))
      (goto-char start)
      (while (re-search-forward pattern end t)
        (put-text-property (match-beginning group) (match-end group) 'face face)))))

(defun ide-bridge--trim ()
  "Let the oldest text go when there is too much."
  (when (< ide-bridge--session-limit (buffer-size))
    (goto-char (- (point-max) (/ (* 3 ide-bridge--session-limit) 4)))
    (forward-line 1)
    (when (and ide-bridge--piece (< ide-bridge--piece (point)))
      (setq ide-bridge--piece nil))
    (delete-region (point-min) (point))
    (goto-char (point-min))
    (insert (propertize "… what came before is left out here\n" 'face 'shadow))
    (maphash (lambda (id place)
               (when (= (cdr place) (point-min)) (remhash id ide-bridge--items)))
             ide-bridge--items)))

(provide 'ide-bridge-session)
;;; ide-bridge-session.el ends here
