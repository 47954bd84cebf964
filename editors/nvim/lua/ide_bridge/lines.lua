--- A text as lines to read, none of them too long.
---
--- It does not know what the text is about.
local M = {}

local WIDTH = 1000 -- a longer line is continued in the next one

--- All of it in one line.
---@param text string
---@return string
function M.one(text)
  return vim.trim((text:gsub("%c+", " ")))
end

---@param into string[]
---@param line string
local function add_broken(into, line)
  while #line > WIDTH do
    local stop = WIDTH
    while stop > 1 and line:byte(stop + 1) >= 0x80 and line:byte(stop + 1) < 0xC0 do
      stop = stop - 1 -- not in the middle of a character
    end
    table.insert(into, line:sub(1, stop))
    line = line:sub(stop + 1)
  end
  table.insert(into, line)
end

---@param text string
---@return string[]
function M.of(text)
  local lines = {}
  for _, line in ipairs(vim.split(text, "\n", { plain = true })) do
    add_broken(lines, (line:gsub("\r$", "")))
  end
  return lines
end

--- The first ones, and how many more there are.
---@param lines string[]
---@param most integer
---@param key string?  that shows all of them
---@return string[]
function M.cut(lines, most, key)
  local rest = #lines - most
  if rest <= 0 then
    return lines
  end
  local how = key and ("; %s shows all"):format(key) or ""
  local mark = ("… %d more line%s%s"):format(rest, rest == 1 and "" or "s", how)
  return vim.list_extend(vim.list_slice(lines, 1, most), { mark })
end

---@param lines string[]
---@param indent string
---@return string[]
function M.indented(lines, indent)
  return vim.tbl_map(function(line) return line == "" and "" or indent .. line end, lines)
end

return M
