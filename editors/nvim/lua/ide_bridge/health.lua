--- :checkhealth ide_bridge
---
--- It only looks; nothing is started that was not running.
local M = {}

local ANSWER_TIME = 10000 -- ms

-- Neovim 0.7 has other names.
local function reporter(name)
  return vim.health and vim.health[name] or require("health")["report_" .. name]
end

local function check_editor()
  local version = vim.version()
  local text = ("Neovim %d.%d.%d"):format(version.major, version.minor, version.patch)
  if vim.fn.has("nvim-0.7") == 1 then
    reporter("ok")(text)
  else
    reporter("error")(text .. ", but 0.7 is needed")
  end
end

---@param program ide_bridge.Program
---@return string?
local function version_of(program)
  local printed
  local job = vim.fn.jobstart(vim.list_extend(vim.list_extend({}, program.argv), { "--version" }), {
    env = next(program.env) and program.env or nil,
    stdout_buffered = true,
    on_stdout = function(_, lines) printed = lines[1] end,
  })
  return job > 0 and vim.fn.jobwait({ job }, ANSWER_TIME)[1] == 0 and printed or nil
end

local function check_command()
  local command = require("ide_bridge.command")
  local program = command.find()
  if #program.argv == 0 then
    reporter("error")(program.found, { command.INSTALL, "or name it: setup({ command = { … } })" })
    return
  end
  local argv = table.concat(program.argv, " ")
  local version = version_of(program)
  if version then
    reporter("ok")(("%s (%s), found: %s"):format(argv, version, program.found))
  else
    reporter("error")(("%s was found (%s) but does not run"):format(argv, program.found))
  end
end

local function check_cli()
  if vim.fn.executable("claude") == 1 then
    reporter("ok")("claude is on your PATH: :IdeBridgeClaude can start it")
  else
    reporter("info")("claude is not on your PATH; :IdeBridgeClaude needs it, a CLI in another terminal does not")
  end
end

local function check_link()
  local link = require("ide_bridge.link")
  if link.ready() then
    reporter("ok")("attached: " .. require("ide_bridge").statusline())
  else
    reporter("info")("not attached; :IdeBridgeStart attaches")
  end
  for _, sentence in ipairs(require("ide_bridge.say").recent()) do
    reporter("info")("said " .. sentence)
  end
end

function M.check()
  reporter("start")("ide_bridge")
  check_editor()
  check_command()
  check_cli()
  check_link()
end

return M
