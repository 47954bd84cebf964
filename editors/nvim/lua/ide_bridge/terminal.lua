--- The CLI in a terminal window, connected already; the window comes and goes, the CLI goes on.
---
--- It does not know what is said in it.
local say = require("ide_bridge.say")

local M = {}

local api = vim.api
local running ---@type integer?  the terminal's buffer, as long as the CLI runs

-- On the right, unless the user says where (:botright IdeBridgeClaude).
local function split(mods, buffer)
  vim.cmd(("%s sbuffer %d"):format(mods ~= "" and mods or "botright vertical", buffer))
  vim.cmd("startinsert")
end

-- The last window cannot be hidden; it shows something else then.
local function hide(windows)
  for _, window in ipairs(windows) do
    local tab = api.nvim_win_get_tabpage(window)
    if #api.nvim_tabpage_list_wins(tab) > 1 or #api.nvim_list_tabpages() > 1 then
      api.nvim_win_hide(window)
    else
      local other = vim.fn.bufnr("#")
      vim.cmd(other > 0 and other ~= running and "buffer #" or "enew")
    end
  end
end

-- What went wrong stays to be read.
local function ended(buffer, code)
  if running == buffer then
    running = nil
  end
  if code == 0 and api.nvim_buf_is_valid(buffer) then
    api.nvim_buf_delete(buffer, { force = true })
  end
end

local function run(argv, options)
  if vim.fn.has("nvim-0.11") == 1 then
    options.term = true
    return vim.fn.jobstart(argv, options)
  end
  return vim.fn.termopen(argv, options)
end

---@param arguments string[]
---@param mods string
local function start(arguments, mods)
  local program = require("ide_bridge.command").find()
  if #program.argv == 0 then
    say.error(program.found)
    return
  end
  require("ide_bridge.link").start({})
  local buffer = api.nvim_create_buf(false, false)
  vim.bo[buffer].bufhidden = "hide"
  split(mods, buffer)
  local argv = vim.list_extend(vim.list_extend({}, program.argv), { "run", "claude" })
  local job = run(vim.list_extend(argv, arguments), {
    env = next(program.env) and program.env or nil,
    on_exit = function(_, code) vim.schedule(function() ended(buffer, code) end) end,
  })
  if job <= 0 then
    api.nvim_buf_delete(buffer, { force = true })
    say.error(("%s cannot be started"):format(argv[1]))
    return
  end
  running = buffer
end

--- Start the CLI, or show its window, or hide it.
---@param arguments string[]  for the CLI when it is started
---@param mods string         where the window opens: `:vertical`, `:tab` and the like
function M.toggle(arguments, mods)
  if not running or not api.nvim_buf_is_valid(running) then
    start(arguments, mods)
  elseif #arguments > 0 then
    say.error("Claude runs already, and cannot get other arguments now")
  elseif #vim.fn.win_findbuf(running) > 0 then
    hide(vim.fn.win_findbuf(running))
  else
    split(mods, running)
  end
end

return M
