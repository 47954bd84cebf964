vim9script
# Changing what a tool is given before it is allowed: the input as JSON, in a buffer.
#
# Writing the buffer allows it as it is then; closing it leaves the question open.
#
# It does not know tools.

import autoload 'ide_bridge/approvals.vim'
import autoload 'ide_bridge/say.vim'

var edited: dict<dict<any>> = {}  # by the approval's id: approval, buffer

export def Open(approval: dict<any>)
  if approval.kind !=# 'tool' || approval->get('has_nul', false)
    say.Error('this cannot be changed here; a allows or answers it, d denies it')
    return
  endif
  const buffer = bufadd($'ide-bridge://input/{approval.id}')
  edited[approval.id] = {approval: approval, buffer: buffer}
  execute 'botright sbuffer' buffer
  setlocal buftype=acwrite bufhidden=wipe noswapfile nobuflisted
  setline(1, Pretty(approval.input, '')->split("\n"))
  setlocal filetype=json nomodified
  augroup ide_bridge_input
    execute $'autocmd! BufWriteCmd <buffer={buffer}>'
    execute $"autocmd BufWriteCmd <buffer={buffer}> Written('{approval.id}')"
  augroup END
  say.Info($':w allows it as it is here, :q leaves the question open: {approval.title}')
enddef

# What writes without the user, such as an autocommand that saves everything, allows nothing.
def Written(id: string)
  const one = edited->get(id, {})
  if empty(one)
    say.Error('this is no longer asked')
  elseif bufnr() != one.buffer || expand('<stack>')->split('Autocommands for', true)->len() > 2
    return
  else
    Allow(one)
  endif
enddef

def Allow(one: dict<any>)
  var changed: any
  try
    changed = getbufline(one.buffer, 1, '$')->join("\n")->json_decode()
  catch
    say.Error($'this is no JSON: {say.Sentence(v:exception)}')
    return
  endtry
  if type(changed) != v:t_dict
    say.Error('this must be a JSON object, in { and }')
    return
  endif
  setbufvar(one.buffer, '&modified', false)
  const input = changed ==# one.approval.input ? {} : {input: changed}
  approvals.Decide(one.approval, extend({behavior: 'allow'}, input))
enddef

# The question is no longer open.
export def Forget(id: string)
  if edited->has_key(id)
    const buffer = edited->remove(id).buffer
    if bufexists(buffer)
      execute 'silent bwipeout!' buffer
    endif
  endif
enddef

# JSON to read: an element a line, names in order.
export def Pretty(value: any, indent: string): string
  const deeper = indent .. '  '
  if type(value) == v:t_dict && !empty(value)
    const items = value->items()->sort()
    return Enclosed('{', items->mapnew((_, item) =>
      $'{json_encode(item[0])}: {Pretty(item[1], deeper)}'), '}', indent)
  elseif type(value) == v:t_list && !empty(value)
    return Enclosed('[', value->mapnew((_, item) => Pretty(item, deeper)), ']', indent)
  endif
  return json_encode(value)
enddef

def Enclosed(before: string, items: list<string>, after: string, indent: string): string
  return $"{before}\n{indent}  {items->join(",\n" .. indent .. "  ")}\n{indent}{after}"
enddef
