vim9script
# A text as lines to read, none of them too long.
#
# It does not know what the text is about.

const WIDTH = 1000  # a longer line is continued in the next one

export def Of(text: string): list<string>
  const lines = text->split('\r\=\n', true)
  return strlen(text) <= WIDTH ? lines : lines->mapnew((_, line) => Broken(line))->flattennew()
enddef

def Broken(line: string): list<string>
  if strlen(line) <= WIDTH
    return [line]
  endif
  return range(0, strchars(line) - 1, WIDTH)->mapnew((_, start) => strcharpart(line, start, WIDTH))
enddef

# The first ones, and how many more there are.
export def Cut(lines: list<string>, most: number, key: string = ''): list<string>
  const rest = len(lines) - most
  const how = key == '' ? '' : $'; {key} shows all'
  return rest <= 0 ? lines : lines[: most - 1] + [$'… {rest} more line{rest == 1 ? "" : "s"}{how}']
enddef

export def Indented(lines: list<string>, indent: string): list<string>
  return lines->mapnew((_, line) => line == '' ? '' : indent .. line)
enddef

# All of it in one line.
export def One(text: string): string
  return text->substitute('[[:cntrl:]]\+', ' ', 'g')->trim()
enddef

# Whether something is told: neither left out, nor null, nor empty.
export def Has(told: dict<any>, name: string): bool
  const value = told->get(name, null)
  return type(value) != v:t_none && !(type(value) == v:t_string && value == '')
enddef
