vim9script
# Which buffers are files, under which real path, with what text; and columns in code points.
#
# It does not know windows, or who asks.

var paths: dict<string> = {}

# The absolute, real path of a buffer that is a file; empty for all others: those without a name, help, quickfix,
# terminals, file browsers, names with a protocol, and names that are no text.
export def PathOf(buffer: number): string
  if getbufvar(buffer, '&buftype') != ''
    return ''
  endif
  const name = bufname(buffer)
  if name == ''
    return ''
  endif
  const key = buffer .. ':' .. name .. ':' .. (isabsolutepath(name) ? '' : getcwd())
  if !paths->has_key(key)
    paths[key] = Resolved(name)
  endif
  return paths[key]
enddef

# Links and folders may have changed since.
export def ForgetPaths()
  paths = {}
enddef

def Resolved(name: string): string
  if name =~# '^\a[a-zA-Z0-9+.-]\+:[\\/]'
    return ''
  endif
  const path = Real(name)
  return isdirectory(path) || json_decode(json_encode(path)) !=# path ? '' : path
enddef

export def Real(name: string): string
  return fnamemodify(name, ':p')->resolve()->simplify()
enddef

# The buffer that shows a file; 0 when none does.
export def BufferOf(path: string): number
  const real = resolve(path)
  for info in getbufinfo()
    if info.name != '' && (PathOf(info.bufnr) ==# path || PathOf(info.bufnr) ==# real)
      return info.bufnr
    endif
  endfor
  return 0
enddef

# What :write would put into the file.
export def Text(buffer: number): string
  const lines = getbufline(buffer, 1, '$')
  if lines->copy()->filter((_, line) => stridx(line, "\n") >= 0)->len() > 0
    throw 'ide_bridge: the text has NUL characters, which cannot be told'
  endif
  const end = {dos: "\r\n", mac: "\r"}->get(getbufvar(buffer, '&fileformat'), "\n")
  const bom = getbufvar(buffer, '&bomb') ? nr2char(0xfeff) : ''
  return bom .. lines->join(end) .. (EndsLine(buffer, lines) ? end : '')
enddef

def EndsLine(buffer: number, lines: list<string>): bool
  if lines ==# [''] && !getbufvar(buffer, '&modified')
    return getfsize(bufname(buffer)) > 0  # an empty file and one empty line look the same
  endif
  return getbufvar(buffer, '&endofline') || (getbufvar(buffer, '&fixendofline') && !getbufvar(buffer, '&binary'))
enddef

# The code points before a byte of a line.
export def Column(line: string, bytes: number): number
  return strchars(strpart(line, 0, bytes))
enddef

# The bytes before a column; at most all of the line.
export def Bytes(line: string, column: number): number
  return strlen(strcharpart(line, 0, column))
enddef

# The code points before so many UTF-16 units of a line, as language servers count.
export def FromUtf16(line: string, units: number): number
  var left = units
  var column = 0
  for character in split(line, '\zs')
    for code in str2list(character)
      if left <= 0
        return column
      endif
      left -= code > 0xffff ? 2 : 1
      column += 1
    endfor
  endfor
  return column
enddef

export def LineOf(buffer: number, number: number): string
  return getbufline(buffer, number)->get(0, '')
enddef
