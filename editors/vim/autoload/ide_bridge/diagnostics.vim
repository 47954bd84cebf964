vim9script
# Problems that are known in Vim: from the plug-in that finds them, else from the quickfix and location lists.
#
# Whatever counts columns (bytes, UTF-16 units, screen cells) becomes code points here.
#
# It does not know how problems are found.

import autoload 'ide_bridge/buffers.vim'
import autoload 'ide_bridge/link.vim'

const SEVERITIES = ['error', 'warning', 'info', 'hint']
const VIM_LSP = 'lsp#internal#diagnostics#state#_get_all_diagnostics_grouped_by_uri_and_server'
const BY_TYPE = {E: 'error', W: 'warning', I: 'info', N: 'hint'}
# Lists that come from a search have nothing wrong in them.
const SEARCH = '\c\<l\?\%(vim\|help\|git\)\?grep\|\<\%(ack\|ag\|rg\)\>'

var reported: list<string> = []
var timer = 0

# The plug-ins that are asked, by the name the user knows.
export def Sources(): list<string>
  const known = {
    ALE: exists('g:ale_buffer_info') == 1,
    'coc.nvim': exists('g:coc_service_initialized') && g:coc_service_initialized,
    'vim-lsp': exists('*' .. VIM_LSP) == 1,
    'yegappan/lsp': exists('*lsp#diag#GetDiagsForBuf') == 1,
  }
  const there = known->keys()->filter((_, name) => known[name])->sort()
  return empty(there) ? ['quickfix and location lists'] : there
enddef

# The problems of a file, or of all files that have some (`path` empty), as the link wants them.
export def Of(path: string): list<dict<any>>
  const found = Gather()
  const wanted = path == '' ? keys(found)->sort() : [path]
  return wanted->mapnew((_, name) => ({path: name, diagnostics: found->get(name, []), fresh: !Checking(name)}))
enddef

# Once for all that happens at the same time.
export def ReportSoon()
  timer_stop(timer)
  timer = timer_start(0, (_) => Report())
enddef

def Report()
  const now = Gather()->keys()->sort()
  const paths = (now + reported + [buffers.PathOf(bufnr())])->filter((_, path) => path != '')->sort()->uniq()
  reported = now
  if !empty(paths)
    link.Notify('diagnosticsChanged', {paths: paths})
  endif
enddef

# Whether a checker is at work on what it shows, so that its problems are those of an older text.
def Checking(path: string): bool
  const buffer = buffers.BufferOf(path)
  const ale = 'ale#engine#IsCheckingBuffer'
  return buffer > 0 && exists('*' .. ale) == 1 && call(ale, [buffer]) == 1
enddef

def Gather(): dict<list<dict<any>>>
  const ways = {ALE: FromAle, 'coc.nvim': FromCoc, 'vim-lsp': FromVimLsp, 'yegappan/lsp': FromLsp}
  var found: dict<list<dict<any>>> = {}
  for source in Sources()
    const Way: func(): list<list<any>> = ways->get(source, FromLists)
    try
      for [path, problem] in Way()
        found[path] = found->get(path, [])->add(problem)
      endfor
    catch
      # A plug-in that is just starting, or is another version, is no reason to hide what the others know.
    endtry
  endfor
  return found
enddef

# -- the plug-ins ---------------------------------------------------------------------------------------------

def FromAle(): list<list<any>>
  var found: list<list<any>> = []
  for [number, info] in items(g:ale_buffer_info)
    const buffer = str2nr(number)
    for item in info->get('loclist', [])->copy()->filter((_, item) => item->get('bufnr', buffer) == buffer)
      # ALE counts the last column as part of it.
      const end = item->has_key('end_col') ? {end_col: item.end_col + 1} : {}
      const details = {source: item->get('linter_name', 'ALE'), code: item->get('code', '')}
      found->add(Entry(buffer, extendnew(item, end), details))
    endfor
  endfor
  return found->filter((_, entry) => entry[0] != '')
enddef

def FromCoc(): list<list<any>>
  const names = {Error: 'error', Warning: 'warning', Information: 'info', Hint: 'hint'}
  const listed: list<dict<any>> = call('g:CocAction', ['diagnosticList'])
  return listed->mapnew((_, item) => Ranged(item.file, {
    range: item.location.range, message: item.message,
    source: item->get('source', ''), code: item->get('code', ''),
    severity: SEVERITIES->index(names->get(item.severity, 'error')) + 1,
  }))
enddef

def FromVimLsp(): list<list<any>>
  var found: list<list<any>> = []
  const by_uri: dict<dict<any>> = call(VIM_LSP, [])
  for [uri, servers] in items(by_uri)
    const path = call('lsp#utils#uri_to_path', [uri])
    for answer in values(servers)
      found += answer.params.diagnostics->mapnew((_, item) => Ranged(path, item))
    endfor
  endfor
  return found
enddef

def FromLsp(): list<list<any>>
  var found: list<list<any>> = []
  for info in getbufinfo({bufloaded: 1})
    const path = buffers.PathOf(info.bufnr)
    if path != ''
      const items: list<dict<any>> = call('lsp#diag#GetDiagsForBuf', [info.bufnr])
      found += items->mapnew((_, item) => Ranged(path, item))
    endif
  endfor
  return found
enddef

# A problem as language servers tell it.
def Ranged(name: string, item: dict<any>): list<any>
  const path = buffers.Real(name)
  const buffer = buffers.BufferOf(path)
  var problem = {
    start: FromServer(buffer, item.range.start), end: FromServer(buffer, item.range.end),
    severity: SEVERITIES->get(item->get('severity', 1) - 1, 'error'), message: item.message,
  }
  return [path, extend(problem, Details({source: item->get('source', ''), code: item->get('code', '')}))]
enddef

def FromServer(buffer: number, place: dict<any>): dict<any>
  return {line: place.line, column: buffers.FromUtf16(buffers.LineOf(buffer, place.line + 1), place.character)}
enddef

# -- the lists ------------------------------------------------------------------------------------------------

def FromLists(): list<list<any>>
  var seen: dict<bool> = {}
  var found: list<list<any>> = []
  const what = {items: 0, title: 0}
  const lists = [getqflist(what)] + getwininfo()->mapnew((_, info) => getloclist(info.winid, what))
  for one in lists
    const searched = one->get('title', '') =~# SEARCH
    for item in one->get('items', [])
      if item.valid && item.bufnr > 0 && item.lnum > 0 && !(searched && item.type == '')
        const entry = Entry(item.bufnr, item, {code: item.nr > 0 ? string(item.nr) : ''})
        const key = string(entry)
        if entry[0] != '' && !seen->has_key(key)
          seen[key] = true
          found->add(entry)
        endif
      endif
    endfor
  endfor
  return found
enddef

# -- one entry, as lists and ALE have it: lines and columns from 1, columns in bytes --------------------------

def Entry(buffer: number, item: dict<any>, details: dict<any>): list<any>
  const first = max([item.lnum, 1])
  const last = max([item->get('end_lnum', 0), first])
  const line = buffers.LineOf(buffer, first)
  const col = item->get('vcol', 0) ? strlen(matchstr(line, $'^\%(\%<{item.col}v.\)*')) + 1 : item->get('col', 0)
  var problem = {
    start: {line: first - 1, column: col > 0 ? InLine(line, col - 1) : InLine(line, match(line, '\S'))},
    end: {line: last - 1, column: End(buffer, last, first, col, item->get('end_col', 0))},
    severity: BY_TYPE->get(toupper(item->get('type', '')), 'error'),
    message: trim(item.text),
  }
  return [buffers.PathOf(buffer), extend(problem, Details(details))]
enddef

# Where no end is told, it is the end of the word there, or of the line when no column is told either.
def End(buffer: number, last: number, first: number, col: number, end_col: number): number
  const line = buffers.LineOf(buffer, last)
  if end_col > 0
    return InLine(line, end_col - 1)
  elseif col <= 0 || last != first
    return strchars(line)
  endif
  return InLine(line, max([col - 1, matchend(line, '\%(\k\+\|.\)', col - 1)]))
enddef

# A column that the text does not have is told as it is when the text is not there, else as the last one.
def InLine(line: string, bytes: number): number
  return line == '' ? max([bytes, 0]) : buffers.Column(line, max([bytes, 0]))
enddef

def Details(details: dict<any>): dict<any>
  const texts = details->mapnew((_, value) => type(value) == v:t_string ? value : string(value))
  return texts->copy()->filter((_, value) => value != '')
enddef
