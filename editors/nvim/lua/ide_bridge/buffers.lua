--- Which buffers are files, under which real path, and with what text.
---
--- It does not know windows, or who asks.
local text = require("ide_bridge.text")

local M = {}

local api, uv = vim.api, vim.loop
local LINE_ENDS = { unix = "\n", dos = "\r\n", mac = "\r" }

--- The path without links; of what does not exist, as far as it does.
---@param path string
---@return string
function M.real(path)
  local found = uv.fs_realpath(path)
  local parent = vim.fn.fnamemodify(path, ":h")
  if found or parent == path then
    return found or path
  end
  return (M.real(parent):gsub("/$", "")) .. "/" .. vim.fn.fnamemodify(path, ":t")
end

--- The absolute, real path of a buffer that is a file. All others have none: those without a name, help, quickfix,
--- terminals, file browsers, names with a protocol, and names that are no text.
---@param buffer integer
---@return string?
function M.path(buffer)
  local name = api.nvim_buf_get_name(buffer)
  if name == "" or vim.bo[buffer].buftype ~= "" or name:find("^%a[%w+.-]+:[/\\]") then
    return nil
  end
  local path = M.real(name)
  if vim.fn.isdirectory(path) == 1 or text.clean(path) ~= path then
    return nil
  end
  return path
end

--- The buffer that shows a file.
---@param path string
---@return integer?
function M.of(path)
  local real = M.real(path)
  for _, buffer in ipairs(api.nvim_list_bufs()) do
    if M.path(buffer) == real then
      return buffer
    end
  end
end

--- The buffer that has a file loaded.
---@param path string
---@return integer?
function M.loaded(path)
  local buffer = M.of(path)
  return buffer and api.nvim_buf_is_loaded(buffer) and buffer or nil
end

--- Whether the current buffer is one without a name that could become a file.
---@return boolean
function M.unnamed()
  return vim.bo.buftype == "" and api.nvim_buf_get_name(0) == "" and vim.fn.win_gettype() == ""
end

-- An empty file and one empty line look the same.
local function ends_line(buffer, lines)
  local options = vim.bo[buffer]
  if #lines == 1 and lines[1] == "" and not options.modified then
    return vim.fn.getfsize(api.nvim_buf_get_name(buffer)) > 0
  end
  return options.endofline or (options.fixendofline and not options.binary)
end

--- What :write would put into the file.
---@param buffer integer
---@return string
function M.text(buffer)
  local lines = api.nvim_buf_get_lines(buffer, 0, -1, false)
  local options = vim.bo[buffer]
  local line_end = LINE_ENDS[options.fileformat]
  local last = ends_line(buffer, lines) and line_end or ""
  return text.clean((options.bomb and "\239\187\191" or "") .. table.concat(lines, line_end) .. last)
end

--- One line; the first is 1.
---@param buffer integer
---@param number integer
---@return string
function M.line(buffer, number)
  return api.nvim_buf_get_lines(buffer, number - 1, number, false)[1] or ""
end

return M
