--- Texts as the link carries them: valid UTF-8, columns in code points.
---
--- It does not know buffers.
local M = {}

local REPLACEMENT = "\239\191\189" -- U+FFFD

-- What characters beyond ASCII begin with (from, to), how many bytes follow, and what the first of those may be.
local FORMS = {
  { 0xC2, 0xDF, 1, 0x80, 0xBF },
  { 0xE0, 0xE0, 2, 0xA0, 0xBF },
  { 0xE1, 0xEC, 2, 0x80, 0xBF },
  { 0xED, 0xED, 2, 0x80, 0x9F },
  { 0xEE, 0xEF, 2, 0x80, 0xBF },
  { 0xF0, 0xF0, 3, 0x90, 0xBF },
  { 0xF1, 0xF3, 3, 0x80, 0xBF },
  { 0xF4, 0xF4, 3, 0x80, 0x8F },
}

local form_of = {} ---@type table<integer, integer[]>
for _, form in ipairs(FORMS) do
  for byte = form[1], form[2] do
    form_of[byte] = form
  end
end

-- How many bytes the character has that begins here; nil when none does.
---@return integer?
local function width(text, index)
  local form = form_of[text:byte(index)]
  if not form then
    return nil
  end
  local following, low, high = form[3], form[4], form[5]
  for offset = 1, following do
    local byte = text:byte(index + offset)
    if not byte or byte < low or byte > high then
      return nil
    end
    low, high = 0x80, 0xBF
  end
  return following + 1
end

-- A run of bytes beyond ASCII, with U+FFFD for each that is part of no character.
local function repaired(run)
  local pieces, good, index = {}, 1, 1
  while index <= #run do
    local bytes = width(run, index)
    if not bytes then
      pieces[#pieces + 1] = run:sub(good, index - 1) .. REPLACEMENT
      good = index + 1
    end
    index = index + (bytes or 1)
  end
  return table.concat(pieces) .. run:sub(good)
end

--- The text with what is no UTF-8 replaced: JSON cannot carry it.
---@param text string
---@return string
function M.clean(text)
  return text:find("[\128-\255]") and (text:gsub("[\128-\255]+", repaired)) or text
end

--- How many code points a text has.
---@param text string
---@return integer
function M.length(text)
  local _, count = M.clean(text):gsub("[^\128-\191]", "")
  return count
end

--- The code points before a byte of a line.
---@param line string
---@param bytes integer
---@return integer
function M.column(line, bytes)
  return M.length(line:sub(1, bytes))
end

--- The bytes before a column of a line; at most all of the line.
---@param line string
---@param column integer
---@return integer
function M.bytes(line, column)
  local index = 1
  while column > 0 and index <= #line do
    index = index + (line:byte(index) < 0x80 and 1 or width(line, index) or 1)
    column = column - 1
  end
  return index - 1
end

return M
