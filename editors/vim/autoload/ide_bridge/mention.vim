vim9script
# Mentions: files, or lines of one, that the user hands to the client.
#
# It does not know which client gets them.

import autoload 'ide_bridge/buffers.vim'
import autoload 'ide_bridge/link.vim'
import autoload 'ide_bridge/say.vim'
import autoload 'ide_bridge/status.vim'

# Named files; else, in a file browser, those under the cursor, in the range or marked; else this file or lines
# of it.
export def Send(ranged: bool, first: number, last: number, names: list<string>)
  const [from, to] = ranged ? [first, last] : [line('.'), line('.')]
  const path = buffers.PathOf(bufnr())
  if !empty(names)
    Mention(Expanded(names)->mapnew((_, name) => ({path: buffers.Real(name)})))
  elseif BROWSERS->has_key(&filetype)
    Mention(BROWSERS[&filetype](from, to)->mapnew((_, name) => ({path: buffers.Real(name)})))
  elseif path == ''
    say.Error('this buffer is not a file')
  else
    Mention([ranged ? {path: path, startLine: from - 1, endLine: to - 1} : {path: path}])
  endif
enddef

def Expanded(names: list<string>): list<string>
  const lists = names->mapnew((_, name) => getftype(name) != '' ? [name] : expand(name, true, true))
  return lists->flattennew()
enddef

def Mention(mentions: list<dict<any>>)
  const missing = mentions->copy()->filter((_, mention) => getftype(mention.path) == '')
  if empty(mentions)
    say.Error('there is no file to send here')
  elseif !empty(missing)
    say.Error($'there is no file {missing[0].path}; save it first')
  else
    link.WhenReady(() => {
      for mention in mentions
        link.Notify('mentioned', mention)
      endfor
      say.Info(Described(mentions))
    })
  endif
enddef

def Described(mentions: list<dict<any>>): string
  const one = mentions[0]
  const name = fnamemodify(one.path, ':.')
  const what = len(mentions) > 1 ? $'{len(mentions)} files'
    : !one->has_key('startLine') ? name
    : one.startLine == one.endLine ? $'{name} line {one.startLine + 1}'
    : $'{name} lines {one.startLine + 1} to {one.endLine + 1}'
  const buffer = buffers.BufferOf(one.path)
  const unsaved = buffer > 0 && getbufvar(buffer, '&modified') ? ' (its unsaved changes are not on disk)' : ''
  return (empty(status.Clients()) ? $'no client is there yet to get {what}' : $'sent {what}') .. unsaved
enddef

# -- file browsers: the files of some lines, by 'filetype' ----------------------------------------------------

# Marked files (mf) come first, unless lines were chosen.
def Netrw(from: number, to: number): list<string>
  const marked = call('netrw#Expose', ['netrwmarkfilelist'])
  if from == to && type(marked) == v:t_list && !empty(marked)
    return marked
  endif
  return InLines(from, to, () => {
    const name: string = call('netrw#Call', ['NetrwGetWord'])
    const folder: string = get(w:, 'netrw_liststyle', 0) == 3
      ? call('netrw#Call', ['NetrwTreePath', w:netrw_treetop]) : b:netrw_curdir
    # In a tree the path of a folder has its name already.
    const has_it = name =~# '/$' && folder[-strlen(name) :] ==# name
    return has_it ? folder : substitute(folder, '/$', '', '') .. '/' .. name
  })->filter((_, name) => name !~# '/\.\{1,2}/\?$')
enddef

def NerdTree(from: number, to: number): list<string>
  return InLines(from, to, () => {
    const node = g:NERDTreeFileNode.GetSelected()
    return empty(node) ? '' : node.path.str()
  })
enddef

def Fern(from: number, to: number): list<string>
  const helper = call('fern#helper#new', [])
  if from == to
    return helper.sync.get_selected_nodes()->mapnew((_, node) => node._path)
  endif
  return InLines(from, to, () => helper.sync.get_cursor_node()._path)
enddef

def InLines(from: number, to: number, Name: func(): string): list<string>
  const view = winsaveview()
  var names: list<string> = []
  for number in range(from, to)
    cursor(number, 1)
    names->add(Name())
  endfor
  winrestview(view)
  return names->filter((_, name) => name != '')
enddef

# After the functions it names: a lambda is compiled where it stands.
const BROWSERS: dict<func(number, number): list<string>> = {
  netrw: (from, to) => Netrw(from, to),
  nerdtree: (from, to) => NerdTree(from, to),
  fern: (from, to) => Fern(from, to),
  dirvish: (from, to) => getline(from, to),
}
