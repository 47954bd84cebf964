--- What the user has selected, or where the cursor is, as he moves.
---
--- In a window that is no file (a terminal, help, quickfix, one side of a diff) the last selection in a file stays
--- what it was: it is what he means when he talks to the client there.
---
--- It does not know how often the bridge wants to hear it: it tells all it sees.
local buffers = require("ide_bridge.buffers")
local link = require("ide_bridge.link")
local text = require("ide_bridge.text")

local M = {}

local api = vim.api
local KINDS = { v = "v", V = "V", ["\22"] = "\22", s = "v", S = "V", ["\19"] = "\22" }
local END_OF_LINE = 2147483647 -- the column wanted after "$"

---@class ide_bridge.Selection
---@field path string
---@field text string
---@field start { line: integer, column: integer }
---@field end { line: integer, column: integer }
---@field startLineText string
---@field endLineText string

local last ---@type ide_bridge.Selection?

-- Vim's functions take a line with a NUL for binary data. A control character of the same width may stand for it.
local function for_vim(line)
  return (line:gsub("%z", "\1"))
end

---@param lines string[]   the whole lines it touches
---@param pieces string[]  what is selected of them
---@param first integer[]  line (from 1) and byte where it starts
---@param final integer[]  line and byte where it ends
local function described(lines, pieces, first, final)
  return {
    text = text.clean(table.concat(pieces, "\n")),
    start = { line = first[1] - 1, column = text.column(lines[1], first[2]) },
    ["end"] = { line = final[1] - 1, column = text.column(lines[#lines], final[2]) },
    startLineText = text.clean(lines[1]),
    endLineText = text.clean(lines[#lines]),
  }
end

local function cursor()
  local place = api.nvim_win_get_cursor(0)
  return described({ api.nvim_get_current_line() }, {}, place, place)
end

local function whole_lines(lines, first, final)
  return described(lines, lines, { first, 0 }, { final, #lines[#lines] })
end

-- Where the character ends that begins at a byte, with what is composed onto it.
local function after(line, byte)
  return byte >= #line and #line or vim.fn.matchend(for_vim(line), ".", byte)
end

local function characters(lines, from, to)
  local exclusive = vim.o.selection == "exclusive"
  local start = math.min(from[3] - 1, #lines[1])
  local length = #lines[#lines]
  local stop = exclusive and math.min(to[3] - 1, length) or after(lines[#lines], to[3] - 1)
  local pieces = vim.list_slice(lines)
  pieces[#pieces] = pieces[#pieces]:sub(1, stop)
  pieces[1] = pieces[1]:sub(start + 1)
  if not exclusive and to[3] > length and to[2] < api.nvim_buf_line_count(0) then -- the line end too
    local beyond = vim.list_extend(vim.list_slice(lines), { buffers.line(0, to[2] + 1) })
    return described(beyond, vim.list_extend(pieces, { "" }), { from[2], start }, { to[2] + 1, 0 })
  end
  return described(lines, pieces, { from[2], start }, { to[2], stop })
end

-- The first and the last screen column of what is under one end of the selection.
local function screen_columns(mark)
  local _, number, column, beyond = unpack(vim.fn.getpos(mark))
  local right = vim.fn.virtcol(mark)
  if beyond > 0 then
    return right, right
  end
  return (column > 1 and vim.fn.virtcol({ number, column - 1 }) or 0) + 1, right
end

local function block_columns()
  local one_left, one_right = screen_columns("v")
  local other_left, other_right = screen_columns(".")
  local left, right = math.min(one_left, other_left), math.max(one_right, other_right)
  if vim.fn.winsaveview().curswant == END_OF_LINE then
    right = END_OF_LINE - 1
  elseif vim.o.selection == "exclusive" and one_left ~= other_left then
    right = math.max(one_left, other_left) - 1
  end
  return left, right
end

local function block(lines, first, final)
  local left, right = block_columns()
  local piece = [[\%(\%<]] .. right + 1 .. "v.\\)*"
  local pattern = [[\%>]] .. left - 1 .. "v" .. (right == END_OF_LINE - 1 and ".*" or piece)
  local pieces, start, stop = {}, nil, nil
  for index, line in ipairs(lines) do
    local _, from, to = unpack(vim.fn.matchstrpos(for_vim(line), pattern))
    from, to = from < 0 and #line or from, to < 0 and #line or to
    pieces[index] = line:sub(from + 1, to)
    start, stop = start or from, to
  end
  return described(lines, pieces, { first, start }, { final, stop })
end

--- Whether the user is selecting something now.
---@return boolean
function M.selecting()
  return KINDS[vim.fn.mode()] ~= nil
end

local function selected()
  local kind = KINDS[vim.fn.mode()]
  if not kind then
    return cursor()
  end
  local from, to = vim.fn.getpos("v"), vim.fn.getpos(".")
  if from[2] > to[2] or (from[2] == to[2] and from[3] + from[4] > to[3] + to[4]) then
    from, to = to, from
  end
  local lines = api.nvim_buf_get_lines(0, from[2] - 1, to[2], false)
  if kind == "V" then
    return whole_lines(lines, from[2], to[2])
  end
  return kind == "v" and characters(lines, from, to) or block(lines, from[2], to[2])
end

-- Whether it is another one than before.
---@return boolean
local function look()
  local path = buffers.path(api.nvim_get_current_buf())
  if not path then
    return false
  end
  local now = selected()
  now.path = path
  local changed = not vim.deep_equal(now, last)
  last = now
  return changed
end

--- What was selected last in this buffer, as exactly as it was; for a command that has ended Visual mode.
---@return ide_bridge.Selection
function M.visual()
  local view = vim.fn.winsaveview()
  vim.cmd("noautocmd normal! gv")
  local chosen = selected()
  vim.cmd("noautocmd normal! \27")
  vim.fn.winrestview(view)
  return chosen
end

--- Whole lines; the first line is 1.
---@param first integer
---@param final integer
---@return ide_bridge.Selection
function M.lines(first, final)
  return whole_lines(api.nvim_buf_get_lines(0, first - 1, final, false), first, final)
end

--- The selection now; none when no file has been looked at, or a buffer is that has no name yet.
---@return ide_bridge.Selection?
function M.current()
  look()
  return not buffers.unnamed() and last or nil
end

--- The buffer looked at, or the last one that is a file.
---@return integer?
function M.buffer()
  local here = api.nvim_get_current_buf()
  if buffers.path(here) then
    return here
  end
  return not buffers.unnamed() and last and buffers.of(last.path) or nil
end

--- Tell the bridge, unless it knows.
function M.report()
  if look() then
    link.notify("selectionChanged", last)
  end
end

--- The file was closed.
---@param path string
function M.forget(path)
  if last and last.path == path then
    last = nil
  end
end

function M.reset()
  last = nil
end

return M
