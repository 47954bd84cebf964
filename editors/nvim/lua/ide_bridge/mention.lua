--- Handing files, or lines of one, to the client.
---
--- It does not know which client gets them; the bridge keeps them until one is there.
local buffers = require("ide_bridge.buffers")
local link = require("ide_bridge.link")
local say = require("ide_bridge.say")

local M = {}

---@param path string
---@return string
local function name(path)
  return vim.fn.fnamemodify(path, ":.")
end

-- The client reads the disk.
local function unsaved(path)
  local buffer = buffers.of(path)
  return buffer and vim.bo[buffer].modified and " (its unsaved changes are not on disk)" or ""
end

local function tell(what)
  local connected = #require("ide_bridge.status").clients() > 0
  say.info((connected and "sent " or "no client is there yet to get ") .. what)
end

-- As a path; none, and said so, when there is no such file.
local function existing(given)
  local path = buffers.real((vim.fn.fnamemodify(given, ":p"):gsub("(.)/$", "%1")))
  if buffers.of(path) or vim.loop.fs_stat(path) then
    return path
  end
  say.error("there is no file " .. name(path))
end

--- Hand files to the client.
---@param paths string[]
function M.files(paths)
  link.when_ready(function()
    local sent = {}
    for _, given in ipairs(paths) do
      local path = existing(given)
      if path then
        link.notify("mentioned", { path = path })
        table.insert(sent, name(path) .. unsaved(path))
      end
    end
    if #sent > 0 then
      tell(#sent == 1 and sent[1] or ("%d files"):format(#sent))
    end
  end)
end

--- Hand lines of the current file to the client; the first line is 1.
---@param first integer
---@param last integer
function M.lines(first, last)
  local path = buffers.path(vim.api.nvim_get_current_buf())
  if not path then
    say.error("this buffer is not a file")
    return
  end
  link.when_ready(function()
    link.notify("mentioned", { path = path, startLine = first - 1, endLine = last - 1 })
    local lines = first == last and ("line %d"):format(first) or ("lines %d to %d"):format(first, last)
    tell(("%s %s%s"):format(name(path), lines, unsaved(path)))
  end)
end

-- The names of a command line as the files they stand for.
---@return string[]
local function expanded(names)
  local paths = {}
  for _, given in ipairs(names) do
    local found = vim.loop.fs_stat(given) and { given } or vim.fn.expand(given, false, true)
    vim.list_extend(paths, #found > 0 and found or { given })
  end
  return paths
end

--- :IdeBridgeSend
---@param call ide_bridge.Call
function M.command(call)
  if #call.fargs > 0 then
    M.files(expanded(call.fargs))
    return
  end
  local chosen = require("ide_bridge.explorers").chosen(call.range > 0, call.line1, call.line2)
  local path = buffers.path(vim.api.nvim_get_current_buf())
  if chosen then
    M.files(chosen)
  elseif call.range > 0 then
    M.lines(call.line1, call.line2)
  elseif path then
    M.files({ path })
  else
    say.error("this buffer is not a file")
  end
end

return M
