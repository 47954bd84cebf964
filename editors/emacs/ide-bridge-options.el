;;; ide-bridge-options.el --- What the user may choose in ide-bridge  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The ide_bridge authors

;; Author: The ide_bridge authors
;; URL: https://github.com/ide-bridge/ide-bridge
;; SPDX-License-Identifier: MIT

;; This file is not part of GNU Emacs.

;;; Commentary:

;; The options and hooks of the package, in one place, so that all of them are
;; known however little of the package is loaded.
;;
;; It does not know what is made of them.

;;; Code:

(defgroup ide-bridge nil
  "Emacs as an IDE for Claude Code and its kin."
  :group 'tools
  :prefix "ide-bridge-")

(defcustom ide-bridge-command nil
  "Program and arguments that start the bridge, a list of strings.
When nil, the program is looked for; `ide-bridge-status' shows what was found."
  :type '(choice (const :tag "Look for it" nil) (repeat string)))

(defcustom ide-bridge-auto-start nil
  "Whether `ide-bridge-mode' attaches every project whose files you look at.
When nil, it attaches the project it is switched on in; attach others
with `ide-bridge-start'."
  :type 'boolean)

(defcustom ide-bridge-diff-view 'ediff
  "How a proposed change is shown.
Changes too large for Ediff are always shown as a unified diff."
  :type '(choice (const :tag "Side by side, in Ediff" ediff)
                 (const :tag "Unified, in Diff mode" unified)))

(defcustom ide-bridge-terminal nil
  "The terminal emulator in which `ide-bridge-claude' runs the CLI.
When nil, the first of vterm, eat and term that is installed."
  :type '(choice (const :tag "The best one installed" nil)
                 (const vterm) (const eat) (const term)))

(defvar ide-bridge-clients-changed-functions nil
  "Functions called with a folder and the list of its clients when they change.
A client is a property list with :name, :version and :pid.")

(defvar ide-bridge-diff-opened-functions nil
  "Functions called with the path of a file for which a change was proposed.")

(defvar ide-bridge-diff-decided-functions nil
  "Functions called with a path and a decision, the symbol `kept' or `rejected'.")

(provide 'ide-bridge-options)
;;; ide-bridge-options.el ends here
