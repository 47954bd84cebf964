--- The problems that `vim.diagnostic` knows, whoever found them.
---
--- It does not know language servers or linters.
local buffers = require("ide_bridge.buffers")
local link = require("ide_bridge.link")
local text = require("ide_bridge.text")

local M = {}

local api = vim.api
local SEVERITIES = { "error", "warning", "info", "hint" }

-- By buffer: which of its texts was looked at when problems were last told.
local looked_at = {} ---@type table<integer, integer>

-- The lines of a file that is not loaded are asked of the disk, once.
---@param buffer integer
---@return fun(number: integer): string
local function reader(buffer)
  if api.nvim_buf_is_loaded(buffer) then
    return function(number) return buffers.line(buffer, number + 1) end
  end
  local read, lines = pcall(vim.fn.readfile, api.nvim_buf_get_name(buffer))
  return function(number) return read and lines[number + 1] or "" end
end

local function place(line_at, number, bytes)
  return { line = number, column = text.column(line_at(number), bytes) }
end

-- Where a language server's own name for a problem is, Neovim 0.7 has it only here.
local function code_of(found)
  local code = found.code or vim.tbl_get(found, "user_data", "lsp", "code")
  return code ~= nil and tostring(code) or nil
end

---@param found table  a Diagnostic of Neovim
---@param line_at fun(number: integer): string
local function described(found, line_at)
  return {
    start = place(line_at, found.lnum, found.col),
    ["end"] = place(line_at, found.end_lnum or found.lnum, found.end_col or found.col),
    severity = SEVERITIES[found.severity] or "error",
    message = text.clean(found.message),
    source = found.source and text.clean(found.source),
    code = code_of(found),
  }
end

-- Problems of another text than the one that is there now are not fresh.
---@param buffer integer
---@return boolean
local function fresh(buffer)
  local tick = looked_at[buffer]
  return tick == nil or tick == api.nvim_buf_get_changedtick(buffer)
end

---@param buffer integer
---@param found table[]
local function file(buffer, found)
  local line_at = reader(buffer)
  local problems = vim.tbl_map(function(problem) return described(problem, line_at) end, found)
  return { path = buffers.path(buffer), diagnostics = problems, fresh = fresh(buffer) }
end

local function of_all()
  local by_buffer = {}
  for _, problem in ipairs(vim.diagnostic.get()) do
    if problem.bufnr and api.nvim_buf_is_valid(problem.bufnr) and buffers.path(problem.bufnr) then
      by_buffer[problem.bufnr] = by_buffer[problem.bufnr] or {}
      table.insert(by_buffer[problem.bufnr], problem)
    end
  end
  local files = {}
  for buffer, found in pairs(by_buffer) do
    table.insert(files, file(buffer, found))
  end
  return files
end

--- The problems of one file, or of all.
---@param path string?
---@return table[]
function M.of(path)
  if not path then
    return of_all()
  end
  local buffer = buffers.of(path)
  return buffer and { file(buffer, vim.diagnostic.get(buffer)) } or {}
end

--- Somebody has told problems of a buffer, or that there are none.
---@param buffer integer
function M.changed(buffer)
  if not api.nvim_buf_is_valid(buffer) then
    return
  end
  looked_at[buffer] = api.nvim_buf_get_changedtick(buffer)
  local path = buffers.path(buffer)
  if path then
    link.notify("diagnosticsChanged", { paths = { path } })
  end
end

return M
