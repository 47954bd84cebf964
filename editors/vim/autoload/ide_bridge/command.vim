vim9script
# Where the program ide-bridge is, and by which of the five ways it was found.
#
# It does not know what the program is asked to do.

export const INSTALL = 'install it with "uv tool install ide-bridge" or "pipx install ide-bridge"'

# The folder editors/vim, its links resolved: an installed plug-in is often a link to it.
const HERE = resolve(expand('<sfile>:p'))->fnamemodify(':h:h:h')

# `argv` is empty when there is none; `found` says in words how it was found, or why it was not; `env` is what it
# needs in its environment.
export def Find(): dict<any>
  if exists('g:ide_bridge_command')
    return Chosen(type(g:ide_bridge_command) == v:t_list ? g:ide_bridge_command : [g:ide_bridge_command])
  endif
  const on_path = exepath('ide-bridge')
  if on_path != ''
    return Found([on_path], 'on your PATH')
  endif
  const local = expand('~/.local/bin/ide-bridge')
  if executable(local) == 1
    return Found([local], 'in ~/.local/bin')
  endif
  return Beside()
enddef

def Found(argv: list<string>, how: string, env: dict<string> = {}): dict<any>
  return {argv: argv, found: how, env: env}
enddef

def Chosen(value: list<any>): dict<any>
  const argv = value->mapnew((_, word) => printf('%s', word))
  if empty(argv) || executable(expand(argv[0])) != 1
    return Found([], $'g:ide_bridge_command names {get(argv, 0, "nothing")}, which cannot be run')
  endif
  return Found([expand(argv[0])] + argv[1 :], 'g:ide_bridge_command')
enddef

# A checkout has the package beside editors/, a wheel has editors/ inside the package.
def Beside(): dict<any>
  const above = fnamemodify(HERE, ':h:h')
  for root in [above, fnamemodify(above, ':h')]
    if filereadable(root .. '/ide_bridge/__main__.py')
      const pythons = [root .. '/.venv/bin/python', fnamemodify(root, ':h:h:h') .. '/bin/python3', 'python3']
      const python = pythons->copy()->filter((_, name) => executable(name) == 1)->get(0, '')
      if python != ''
        return Found([python, '-m', 'ide_bridge'], 'beside the plug-in, in ' .. root, {PYTHONPATH: root})
      endif
    endif
  endfor
  return Found([], 'ide-bridge is not installed; ' .. INSTALL)
enddef
