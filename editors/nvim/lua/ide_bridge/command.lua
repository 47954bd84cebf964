--- Where the program ide-bridge is, and by which of the five ways it was found.
---
--- It does not know what the program is asked to do.
local M = {}

M.INSTALL = 'install it with "uv tool install ide-bridge" or "pipx install ide-bridge"'

-- The folder editors/nvim, its links resolved: an installed plug-in is often a link to it.
local HERE = vim.fn.fnamemodify(vim.loop.fs_realpath(debug.getinfo(1, "S").source:sub(2)), ":h:h:h")

---@class ide_bridge.Program
---@field argv string[]               empty when there is none
---@field found string                how it was found, or why it was not
---@field env table<string, string>   what it needs in its environment

---@return ide_bridge.Program
local function found(argv, how, env)
  return { argv = argv, found = how, env = env or {} }
end

---@param chosen string|string[]
---@return ide_bridge.Program
local function by_choice(chosen)
  local argv = type(chosen) == "table" and vim.deepcopy(chosen) or { chosen }
  argv[1] = argv[1] and vim.fn.expand(argv[1]) or ""
  if vim.fn.executable(argv[1]) ~= 1 then
    local named = argv[1] == "" and "nothing" or argv[1]
    return found({}, ("the option command names %s, which cannot be run"):format(named))
  end
  return found(argv, "the option command")
end

local function first_executable(names)
  for _, name in ipairs(names) do
    if vim.fn.executable(name) == 1 then
      return name
    end
  end
end

-- A checkout has the package beside editors/, a wheel has editors/ inside the package.
---@return ide_bridge.Program?
local function beside()
  local above = vim.fn.fnamemodify(HERE, ":h:h")
  for _, root in ipairs({ above, vim.fn.fnamemodify(above, ":h") }) do
    if vim.fn.filereadable(root .. "/ide_bridge/__main__.py") == 1 then
      local environment = vim.fn.fnamemodify(root, ":h:h:h")
      local python = first_executable({ root .. "/.venv/bin/python", environment .. "/bin/python3", "python3" })
      if python then
        return found({ python, "-m", "ide_bridge" }, "beside the plug-in, in " .. root, { PYTHONPATH = root })
      end
    end
  end
end

---@return ide_bridge.Program
function M.find()
  local chosen = require("ide_bridge.options").get("command")
  if chosen then
    return by_choice(chosen)
  end
  local on_path = vim.fn.exepath("ide-bridge")
  if on_path ~= "" then
    return found({ on_path }, "on your PATH")
  end
  local in_home = vim.fn.expand("~/.local/bin/ide-bridge")
  if vim.fn.executable(in_home) == 1 then
    return found({ in_home }, "in ~/.local/bin")
  end
  return beside() or found({}, "ide-bridge is not installed; " .. M.INSTALL)
end

return M
