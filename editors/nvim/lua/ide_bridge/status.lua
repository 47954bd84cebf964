--- What there is to know about the connection, in a status line and in full.
---
--- It does not know how it is connected.
local diff = require("ide_bridge.diff")
local events = require("ide_bridge.events")
local link = require("ide_bridge.link")
local say = require("ide_bridge.say")

local M = {}

local clients = {} ---@type { name: string, version: string?, pid: integer? }[]
local policy = "full"

local function redraw()
  vim.cmd("redrawstatus!")
end

-- -- what the bridge tells -------------------------------------------------------------------------------------

---@param now table[]
function M.clients_changed(now)
  local came, went = #now > #clients, #now < #clients
  clients = now
  if came then
    say.info(("%s is connected"):format(now[#now].name or "a client"))
  elseif went and #now == 0 then
    say.info("no client is connected any more")
  end
  if came or went then
    events.raise(came and "Connected" or "Disconnected", { clients = now })
  end
  redraw()
end

local function learn_policy()
  link.request("share", {}, function(found)
    policy = found
    redraw()
  end)
end

---@param welcome { port: integer, clients: table[] }  the bridge's answer to `hello`
function M.began(welcome)
  clients = welcome.clients or {}
  learn_policy()
  events.raise("Started", { clients = clients })
  if #clients > 0 then
    events.raise("Connected", { clients = clients })
  end
  redraw()
end

function M.ended()
  clients, policy = {}, "full"
  events.raise("Stopped", vim.empty_dict())
  redraw()
end

---@return boolean
function M.connected()
  return #clients > 0
end

-- -- the status line -------------------------------------------------------------------------------------------

--- Empty when it does not run; then how many clients and diffs there are, and what is not shared.
---@return string
function M.line()
  if not link.runs() then
    return ""
  elseif not link.ready() then
    return "IDE …"
  end
  local parts = { #clients == 0 and "IDE" or #clients == 1 and "IDE ●" or ("IDE ●%d"):format(#clients) }
  if diff.count() > 0 then
    table.insert(parts, diff.count() == 1 and "1 diff" or ("%d diffs"):format(diff.count()))
  end
  if policy ~= "full" then
    table.insert(parts, "sharing " .. policy)
  end
  return table.concat(parts, ", ")
end

-- -- sharing ---------------------------------------------------------------------------------------------------

local MEANING = {
  full = "the selection and the name of its file",
  path = "the name of the current file, not what is selected",
  off = "nothing",
}

---@param wanted "full"|"path"|"off"|nil
function M.sharing(wanted)
  if wanted and not MEANING[wanted] then
    say.error(("sharing is full, path or off, not %s"):format(wanted))
    return
  end
  link.when_ready(function()
    link.request("share", { policy = wanted }, function(holds)
      policy = holds
      redraw()
      local stricter = wanted and holds ~= wanted and " (this workspace does not allow more)" or ""
      say.info(("sharing %s: clients are told %s unasked%s"):format(holds, MEANING[holds] or "less", stricter))
    end)
  end)
end

-- -- in full ---------------------------------------------------------------------------------------------------

local function client_line(client)
  local version = client.version and " " .. client.version or ""
  local pid = client.pid and (", pid %d"):format(client.pid) or ""
  local folder = client.folder and " in " .. vim.fn.fnamemodify(client.folder, ":~") or ""
  return ("  client     %s%s%s%s"):format(client.name, version, pid, folder)
end

local function found_line()
  local program = require("ide_bridge.command").find()
  local argv = #program.argv > 0 and table.concat(program.argv, " ") .. " – " or ""
  return "  command    " .. argv .. program.found
end

local function bridge_lines(state)
  local lines = {
    ("  bridge     port %d, pid %d"):format(state.port, state.pid),
    "  workspace  " .. table.concat(vim.tbl_map(function(folder)
      return vim.fn.fnamemodify(folder, ":~")
    end, state.workspaceFolders), ", "),
    "  sharing    " .. (state.sharing or policy),
  }
  vim.list_extend(lines, vim.tbl_map(client_line, state.clients))
  if #state.clients == 0 then
    table.insert(lines, "  clients    none; :IdeBridgeClaude starts one")
  end
  for _, path in ipairs(diff.paths()) do
    table.insert(lines, "  diff       " .. vim.fn.fnamemodify(path, ":~:."))
  end
  return lines
end

local function show(lines)
  local recent = vim.list_slice(say.recent(), math.max(1, #say.recent() - 4))
  vim.list_extend(lines, vim.tbl_map(function(sentence) return "  said       " .. sentence end, recent))
  vim.api.nvim_echo({ { table.concat(lines, "\n") } }, false, {})
end

--- :IdeBridgeStatus
function M.show()
  if not link.ready() then
    local state = link.runs() and "ide_bridge is starting" or "ide_bridge does not run; :IdeBridgeStart starts it"
    show({ state, found_line() })
    return
  end
  link.request("status", {}, function(state)
    show(vim.list_extend({ "ide_bridge runs", found_line() }, bridge_lines(state)))
  end)
end

return M
