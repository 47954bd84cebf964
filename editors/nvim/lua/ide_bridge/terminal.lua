--- Claude Code in a terminal window, connected from the start.
---
--- It does not know the link: the CLI finds the bridge by what `ide-bridge run` tells it.
local say = require("ide_bridge.say")

local M = {}

local api = vim.api
local shown ---@type integer?  the terminal's buffer, as long as the CLI runs

local function show(buffer, mods)
  vim.cmd(("%s sbuffer %d"):format(mods ~= "" and mods or "botright vertical", buffer))
  vim.cmd("startinsert")
end

-- The windows are closed, the CLI goes on.
local function hide(windows)
  for _, window in ipairs(windows) do
    if #api.nvim_list_wins() == 1 then
      say.info("this is the last window; :q leaves Neovim")
      return
    end
    api.nvim_win_close(window, false)
  end
end

local function ended(buffer, code)
  shown = shown ~= buffer and shown or nil
  if code == 0 and api.nvim_buf_is_valid(buffer) then
    api.nvim_buf_delete(buffer, { force = true })
  elseif code ~= 0 then
    say.warning(("the CLI ended with %d; its window shows why"):format(code))
  end
end

local function run(argv, options)
  if vim.fn.has("nvim-0.11") == 1 then
    options.term = true
    return vim.fn.jobstart(argv, options)
  end
  return vim.fn.termopen(argv, options)
end

---@param program ide_bridge.Program
---@param arguments string[]
---@param mods string
local function start(program, arguments, mods)
  local argv = vim.list_extend(vim.list_extend({}, program.argv), { "run", "claude" })
  local buffer = api.nvim_create_buf(false, false)
  vim.bo[buffer].bufhidden = "hide"
  show(buffer, mods)
  local job = run(vim.list_extend(argv, arguments), {
    env = next(program.env) and program.env or nil,
    on_exit = function(_, code) vim.schedule(function() ended(buffer, code) end) end,
  })
  if job <= 0 then
    api.nvim_buf_delete(buffer, { force = true })
    say.error(("%s cannot be started"):format(argv[1]))
    return
  end
  shown = buffer
end

--- Start the CLI, or show its window, or hide it.
---@param arguments string[]  for the CLI when it is started
---@param mods string         where the window opens: `:vertical`, `:tab` and the like
function M.toggle(arguments, mods)
  if shown and api.nvim_buf_is_valid(shown) then
    local windows = vim.fn.win_findbuf(shown)
    if #arguments > 0 then
      say.warning("the CLI runs already; what was given for it is not used")
    end
    if #windows > 0 then
      hide(windows)
    else
      show(shown, mods)
    end
    return
  end
  local link = require("ide_bridge.link")
  link.when_ready(function() start(require("ide_bridge.command").find(), arguments, mods) end)
end

return M
