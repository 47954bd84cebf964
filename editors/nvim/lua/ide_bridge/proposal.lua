--- A proposed text and its line ends, in a buffer and out of it again.
---
--- It does not know windows, or who proposes.
local buffers = require("ide_bridge.buffers")

local M = {}

local api = vim.api

-- Only a text in which every line ends alike can be shown without its carriage returns.
---@param contents string
---@return "dos"|"unix"
local function format(contents)
  local _, breaks = contents:gsub("\n", "")
  local _, pairs_of_both = contents:gsub("\r\n", "")
  return breaks > 0 and breaks == pairs_of_both and contents:sub(-1) ~= "\r" and "dos" or "unix"
end

---@param contents string
---@return string[]
local function lines_of(contents)
  local lines = vim.split(contents, format(contents) == "dos" and "\r\n" or "\n", { plain = true })
  if #lines > 1 and lines[#lines] == "" then
    lines[#lines] = nil
  end
  return lines
end

-- An empty text has no line end, but what is written into it should get one.
---@param contents string
---@return boolean
local function ends_line(contents)
  return contents == "" or contents:sub(-1) == "\n"
end

--- Put a proposed text into a buffer; that it came cannot be undone there.
---@param buffer integer
---@param contents string
function M.fill(buffer, contents)
  local options = vim.bo[buffer]
  options.undolevels = -1
  api.nvim_buf_set_lines(buffer, 0, -1, false, lines_of(contents))
  api.nvim_buf_call(buffer, function() vim.cmd("setlocal undolevels<") end)
  options.fileformat = format(contents)
  options.fixendofline = false
  options.endofline = ends_line(contents)
  options.modified = false
end

--- The text as it is in the buffer now: as it was proposed, to the byte, unless the user has changed it.
---@param contents string
---@param buffer integer?
---@return string
function M.final(contents, buffer)
  if not buffer or not api.nvim_buf_is_loaded(buffer) then
    return contents
  end
  local options = vim.bo[buffer]
  local same = options.endofline == ends_line(contents)
    and options.fileformat == format(contents)
    and vim.deep_equal(api.nvim_buf_get_lines(buffer, 0, -1, false), lines_of(contents))
  return same and contents or buffers.text(buffer)
end

return M
