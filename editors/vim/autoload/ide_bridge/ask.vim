vim9script
# Asking Claude something, with what the user has selected.
#
# It does not know which session it goes to, unless it is asked in the window of one; or what is answered.

import autoload 'ide_bridge/buffers.vim'
import autoload 'ide_bridge/selection.vim'
import autoload 'ide_bridge/sessions.vim'

# :IdeBridgeAsk
export def Command(new: bool, range: number, first: number, final: number, question: string)
  const about = range == 0 ? {} : About(range, first, final)
  const text = question == '' ? Question() : question
  if text =~# '\S'
    Ask({text: text}->extend(new ? {new: true} : Here())->extend(about))
  endif
enddef

# In the window of a session: the next question there.
export def Next()
  Command(false, 0, 0, 0, '')
enddef

def Ask(params: dict<any>)
  sessions.Call('ask', params, (answer) => {
    sessions.Used(answer.session, answer->get('title', ''))
  })
enddef

def Here(): dict<any>
  return sessions.Here() == '' ? {} : {session: sessions.Here()}
enddef

def Question(): string
  const text = input('Ask Claude: ')
  redraw
  return text
enddef

# What is asked about: the lines of the range, or exactly what was selected if they are those of Visual mode. Of
# what is no file, nothing.
def About(range: number, first: number, final: number): dict<any>
  const path = buffers.PathOf(bufnr())
  if path == ''
    return {}
  endif
  const visual = range == 2 && first == line("'<") && final == line("'>")
  const chosen = visual ? selection.Visual() : selection.Lines(first, final)
  return {path: path, start: chosen.start, end: chosen.end, selection: chosen.text}
enddef
