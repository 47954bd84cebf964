vim9script
# Sentences for the user: one line each, never a prompt to press Enter.
#
# It does not know what they are about.

import autoload 'ide_bridge/idle.vim'

const KEPT = 20
var said: list<string> = []

export def Info(text: string)
  Say('None', text)
enddef

export def Warning(text: string)
  Say('WarningMsg', text)
enddef

export def Error(text: string)
  Say('ErrorMsg', text)
enddef

# An exception without Vim's own preface to it.
export def Sentence(problem: string): string
  return problem->substitute('^Vim\%((\a\+)\)\?:\|^ide_bridge: ', '', 'g')
enddef

# The last ones in full, oldest first.
export def Recent(): list<string>
  return said
enddef

def Say(highlight: string, text: string)
  const line = text->substitute('[[:cntrl:]]\+', ' ', 'g')
  said = (said + [strftime('%H:%M:%S ') .. line])[-KEPT :]
  if mode() =~# '^[cr]'
    idle.Do(() => Echo(highlight, line))  # somebody types a command where it would be written
  else
    Echo(highlight, line)
  endif
enddef

def Echo(highlight: string, line: string)
  redraw  # or a second line would scroll, and ask for Enter
  execute 'echohl' highlight
  echomsg Shortened('ide_bridge: ' .. line, v:echospace)
  echohl None
enddef

def Shortened(text: string, width: number): string
  if strdisplaywidth(text) <= width
    return text
  endif
  var cut = text
  while cut != '' && strdisplaywidth(cut) > width - 1
    cut = strcharpart(cut, 0, strchars(cut) - 1)
  endwhile
  return cut .. (&encoding ==# 'utf-8' ? '…' : '~')
enddef
