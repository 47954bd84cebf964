--- What is known about the bridge: clients, sharing; for the status line, and as a page.
---
--- It does not know how any of it is learnt but by asking the bridge.
local diff = require("ide_bridge.diff")
local events = require("ide_bridge.events")
local link = require("ide_bridge.link")
local say = require("ide_bridge.say")

local M = {}

local MEANING = {
  full = "selections and the names of open files",
  path = "which file and which lines, not their text",
  off = "nothing unasked",
}

---@class ide_bridge.Client
---@field name string
---@field version string?
---@field pid integer?
---@field folder string?

local clients = {} ---@type ide_bridge.Client[]
local policy = "full"

---@return ide_bridge.Client[]
function M.clients()
  return clients
end

local function redraw()
  vim.cmd("redrawstatus!")
end

-- -- what happens ----------------------------------------------------------------------------------------------

-- Those of the first list that are not in the second.
---@param some ide_bridge.Client[]
---@param others ide_bridge.Client[]
---@return string[] names
local function without(some, others)
  local known = {}
  for _, client in ipairs(others) do
    known[client.pid or client.name] = true
  end
  local rest = vim.tbl_filter(function(client) return not known[client.pid or client.name] end, some)
  return vim.tbl_map(function(client) return client.name end, rest)
end

---@param now ide_bridge.Client[]
function M.clients_changed(now)
  local came, went = without(now, clients), without(clients, now)
  clients = now
  if #came > 0 then
    say.info(table.concat(came, ", ") .. " connected")
    events.raise("Connected", { clients = now })
  end
  if #went > 0 then
    events.raise("Disconnected", { clients = now })
  end
  redraw()
end

---@param wanted string?
---@param callback fun(holds: string)?
local function ask_policy(wanted, callback)
  link.request("share", { policy = wanted }, function(holds)
    policy = holds
    redraw()
    if callback then
      callback(holds)
    end
  end)
end

---@param welcome { port: integer, pid: integer, clients: ide_bridge.Client[] }  the bridge's answer to `hello`
function M.began(welcome)
  clients = {}
  events.raise("Started", { port = welcome.port, pid = welcome.pid })
  M.clients_changed(welcome.clients or {})
  ask_policy()
  require("ide_bridge.approvals").begin()
end

function M.ended()
  clients, policy = {}, "full"
  events.raise("Stopped", vim.empty_dict())
  redraw()
end

-- -- the status line -------------------------------------------------------------------------------------------

--- Empty when it is not attached; else how many clients and diffs there are, and what is not shared.
---@return string
function M.line()
  if not link.ready() then
    return ""
  end
  local parts = { #clients == 0 and "bridge" or ("bridge:%d"):format(#clients) }
  if diff.count() > 0 then
    table.insert(parts, diff.count() == 1 and "1 diff" or ("%d diffs"):format(diff.count()))
  end
  local asked = require("ide_bridge.approvals").count()
  if asked > 0 then
    table.insert(parts, asked == 1 and "1 approval" or ("%d approvals"):format(asked))
  end
  if policy ~= "full" then
    table.insert(parts, "sharing " .. policy)
  end
  return table.concat(parts, " ")
end

-- -- sharing ---------------------------------------------------------------------------------------------------

---@param wanted "full"|"path"|"off"|nil
function M.sharing(wanted)
  wanted = wanted ~= "" and wanted or nil
  if wanted and not MEANING[wanted] then
    say.error(("sharing is full, path or off, not %s"):format(wanted))
    return
  end
  link.when_ready(function()
    ask_policy(wanted, function(holds)
      local strict = wanted and wanted ~= holds and ", as this workspace wants it" or ""
      say.info(("sharing is %s: %s%s"):format(holds, MEANING[holds] or holds, strict))
    end)
  end)
end

-- -- the page --------------------------------------------------------------------------------------------------

local function shortened(path)
  return vim.fn.fnamemodify(path, ":~")
end

---@param title string
---@param lines string[]
---@return string[]
local function listed(title, lines)
  if #lines == 0 then
    return { ("%-12s none"):format(title) }
  end
  return vim.list_extend({ title }, vim.tbl_map(function(line) return "  " .. line end, lines))
end

---@param client ide_bridge.Client
---@return string
local function client_line(client)
  local where = client.folder and " in " .. shortened(client.folder) or ""
  return ("%s %s pid %s%s"):format(client.name or "?", client.version or "", client.pid or "?", where)
end

local function remote(told)
  local lines = {
    "Workspace    " .. table.concat(vim.tbl_map(shortened, told.workspaceFolders), ", "),
    ("Bridge       pid %d, port %d"):format(told.pid, told.port),
    "Lock         " .. shortened(told.lock or ""),
    ("Sharing      %s: %s"):format(told.sharing, MEANING[told.sharing] or ""),
  }
  vim.list_extend(lines, listed("Clients", vim.tbl_map(client_line, told.clients)))
  vim.list_extend(lines, listed("Editors", vim.tbl_map(function(editor) return editor.name end, told.editors)))
  local sessions = vim.tbl_map(function(session)
    return ("%s %s %s"):format(session.session:sub(1, 8), session.state, (session.title:gsub("%c", " ")))
  end, told.sessions or {})
  vim.list_extend(lines, listed("Sessions", sessions))
  local paths = vim.tbl_map(function(one) return vim.fn.fnamemodify(one.path, ":.") end, told.diffs)
  return vim.list_extend(lines, listed("Diffs", paths))
end

local function everything(state, from_bridge)
  local program = require("ide_bridge.command").find()
  local lines = {
    "ide_bridge: " .. state,
    "",
    "Command      " .. (#program.argv > 0 and table.concat(program.argv, " ") or "none"),
    "Found        " .. program.found,
  }
  vim.list_extend(lines, from_bridge)
  local said = say.recent()
  return #said > 0 and vim.list_extend(vim.list_extend(lines, { "" }), listed("Messages", said)) or lines
end

--- :IdeBridgeStatus
function M.show()
  local page = require("ide_bridge.page")
  if not link.ready() then
    local state = link.runs() and "starting" or "not started; :IdeBridgeStart starts it"
    page.show("ide-bridge://status", everything(state, {}))
    return
  end
  link.request("status", {}, function(told)
    page.show("ide-bridge://status", everything("attached", remote(told)))
  end)
end

return M
