vim9script
# What the user has selected, or where the cursor is, as he moves.
#
# In a window that is no file (a terminal, help, quickfix, one side of a diff) the last selection in a file stays
# what it was: it is what he means when he talks to the client there.
#
# It does not know how often the bridge wants to hear it: it tells all it sees.

import autoload 'ide_bridge/buffers.vim'
import autoload 'ide_bridge/link.vim'

var last: dict<any> = {}

# The selection now; null when no file has been looked at.
export def Current(): any
  Report()
  return empty(last) ? null : last
enddef

# The buffer looked at, or the last one that is a file; 0 when there is none.
export def Buffer(): number
  if buffers.PathOf(bufnr()) != ''
    return bufnr()
  endif
  if &buftype == '' && bufname() == '' && win_gettype() == ''
    return 0
  endif
  return empty(last) ? 0 : max([0, buffers.BufferOf(last.path)])
enddef

# What was selected last in this buffer, as exactly as it was; for a command that has ended Visual mode.
export def Visual(): dict<any>
  const view = winsaveview()
  noautocmd normal! gv
  const chosen = Selected()
  execute "noautocmd normal! \<Esc>"
  winrestview(view)
  return chosen
enddef

# Whole lines; the first line is 1.
export def Lines(first: number, final: number): dict<any>
  const lines = getline(first, final)
  return Told(lines, lines, first, 0, final, strchars(lines[-1]))
enddef

# Tell the bridge, unless it knows.
export def Report()
  if Look()
    link.Notify('selectionChanged', last)
  endif
enddef

# After Visual mode it is told once the command is over: it may have gone to a terminal, and what was selected is
# then what he wants to talk about.
export def ReportSoon()
  timer_start(0, (_) => Report())
enddef

export def Forget(path: string)
  if get(last, 'path', '') ==# path
    last = {}
  endif
enddef

export def Reset()
  last = {}
enddef

# Whether it is another one than before.
def Look(): bool
  const path = buffers.PathOf(bufnr())
  if path == ''
    if &buftype == '' && bufname() == '' && win_gettype() == ''
      last = {}
    endif
    return false
  endif
  const now = extend(Selected(), {path: path})
  if now ==# last
    return false
  endif
  last = now
  return true
enddef

def Selected(): dict<any>
  const kind = mode()
  if kind ==? 's' || kind ==# "\<C-S>"
    return Between({s: 'v', S: 'V'}->get(kind, "\<C-V>"))
  endif
  return kind ==# 'v' || kind ==# 'V' || kind ==# "\<C-V>" ? Between(kind) : Cursor()
enddef

def Cursor(): dict<any>
  const line = getline('.')
  const at = {line: line('.') - 1, column: buffers.Column(line, col('.') - 1)}
  return {text: '', start: at, end: at, startLineText: Shown(line), endLineText: Shown(line)}
enddef

def Between(kind: string): dict<any>
  var [from, to] = [getpos('v'), getpos('.')]
  if from[1] > to[1] || (from[1] == to[1] && from[2] + from[3] > to[2] + to[3])
    [from, to] = [to, from]
  endif
  const lines = getline(from[1], to[1])
  if kind ==# 'V'
    return Lines(from[1], to[1])
  endif
  return kind ==# 'v' ? Characters(lines, from, to) : Block(lines, from[1], to[1])
enddef

def Characters(lines: list<string>, from: list<number>, to: list<number>): dict<any>
  const start = min([from[2] - 1, strlen(lines[0])])
  const end = &selection ==# 'exclusive' ? min([to[2] - 1, strlen(lines[-1])]) : After(lines[-1], to[2] - 1)
  var texts = copy(lines)
  texts[-1] = strpart(texts[-1], 0, end)
  texts[0] = strpart(texts[0], start)
  const first = buffers.Column(lines[0], start)
  if &selection !=# 'exclusive' && to[2] > strlen(lines[-1]) && to[1] < line('$')
    return Told(texts + [''], lines + [getline(to[1] + 1)], from[1], first, to[1] + 1, 0)  # the line end too
  endif
  return Told(texts, lines, from[1], first, to[1], buffers.Column(lines[-1], end))
enddef

# Where the character ends that begins at a byte, with what is composed onto it.
def After(line: string, byte: number): number
  return byte >= strlen(line) ? strlen(line) : matchend(line, '.', byte)
enddef

def Block(lines: list<string>, first: number, last_line: number): dict<any>
  const [one, other] = [virtcol('v', true), virtcol('.', true)]
  const left = min([one[0], other[0]])
  const exclusive = &selection ==# 'exclusive' && one != other
  const right = exclusive ? max([one[0], other[0]]) - 1 : max([one[1], other[1]])
  const to_the_end = winsaveview().curswant == v:maxcol  # after $
  const pattern = $'\%>{left - 1}v' .. (to_the_end ? '.*' : $'\%(\%<{right + 1}v.\)*')
  const pieces = lines->mapnew((_, line) => matchstrpos(line, pattern))
  const from = pieces[0][1] < 0 ? strlen(lines[0]) : pieces[0][1]
  const to = pieces[-1][2] < 0 ? strlen(lines[-1]) : pieces[-1][2]
  const texts = pieces->mapnew((_, piece) => piece[0])
  return Told(texts, lines, first, buffers.Column(lines[0], from), last_line, buffers.Column(lines[-1], to))
enddef

# Lines count from 1 here, as Vim's do.
def Told(
    texts: list<string>, lines: list<string>, first: number, start: number, last_line: number, end: number
): dict<any>
  return {
    text: texts->mapnew((_, text) => Shown(text))->join("\n"),
    start: {line: first - 1, column: start},
    end: {line: last_line - 1, column: end},
    startLineText: Shown(lines[0]),
    endLineText: Shown(lines[-1]),
  }
enddef

# A NUL is a line break in Vim's strings; it must not become one.
def Shown(line: string): string
  return stridx(line, "\n") < 0 ? line : tr(line, "\n", nr2char(0xfffd))
enddef
