vim9script
# Messages in a stream of bytes: a head with Content-Length, then that much JSON.
#
# Vim's own channel mode "lsp" drops a message, and all that follow, when its parts come more than a tenth of a
# second apart (9.0.1378); a busy machine is slower than that, so the bytes are put together here.
#
# It does not know jobs, or what a message means.

const SLICE = 0x8000

var chunks: list<string> = []
var held = 0
var wanted = 0

# Forget what came before: a new stream begins.
export def Reset()
  chunks = []
  held = 0
  wanted = 0
enddef

# The bodies that are complete now, in order. Much at once is taken in slices: whatever is done with a string in
# Vim takes as long as all of it is.
export def Feed(chunk: string): list<string>
  var bodies: list<string> = []
  for start in range(0, strlen(chunk) - 1, SLICE)
    bodies += FeedSlice(strpart(chunk, start, SLICE))
  endfor
  return bodies
enddef

def FeedSlice(chunk: string): list<string>
  chunks->add(chunk)
  held += strlen(chunk)
  var bodies: list<string> = []
  if held < wanted
    return bodies
  endif
  var rest = chunks->join('')
  while true
    const head = stridx(rest, "\r\n\r\n")
    if head < 0
      wanted = 0
      break
    endif
    const length = Length(strpart(rest, 0, head))
    wanted = head + 4 + length
    if strlen(rest) < wanted
      break
    endif
    bodies->add(strpart(rest, head + 4, length))
    rest = strpart(rest, wanted)
  endwhile
  chunks = [rest]
  held = strlen(rest)
  return bodies
enddef

def Length(head: string): number
  const found = matchstr(head, '\c\%(^\|\n\)content-length:\s*\zs\d\+')
  if found == ''
    throw 'ide_bridge: what came is no message'
  endif
  return str2nr(found)
enddef

# A message as bytes. What is no Unicode (half a surrogate pair, beyond U+10FFFF) would make all of it unreadable.
export def Frame(message: dict<any>): string
  const encoded = json_encode(message)
  const body = IsUnicode(encoded) ? encoded : encoded->str2list()->map((_, code) => Character(code))->list2str()
  return $"Content-Length: {strlen(body)}\r\n\r\n{body}"
enddef

def Character(code: number): number
  return code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff) ? 0xfffd : code
enddef

# By its bytes: a pattern takes too long for a large text, or does not take it at all (E945).
def IsUnicode(text: string): bool
  for [lead, seconds] in STRANGE
    if stridx(text, lead) >= 0
      for second in seconds
        if stridx(text, lead .. second) >= 0
          return false
        endif
      endfor
    endif
  endfor
  return true
enddef

def ByteRange(first: number, last: number): list<string>
  return range(first, last)->mapnew((_, byte) => eval(printf('"\x%x"', byte)))
enddef

# First bytes in UTF-8, each with the second bytes that make it something else than Unicode.
const STRANGE: list<list<any>> = [["\xed", ByteRange(0xa0, 0xbf)], ["\xf4", ByteRange(0x90, 0xbf)]]
  + ByteRange(0xf5, 0xfd)->mapnew((_, lead) => [lead, ['']])

# Whether a body holds a NUL character, which a Vim string cannot: it would be left out silently.
export def HasNul(body: string): bool
  return stridx(body, '\u0000') >= 0 && body =~# '\%(^\|[^\\]\)\%(\\\\\)*\\u0000'
enddef
