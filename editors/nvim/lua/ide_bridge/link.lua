--- The link: a process `ide-bridge attach`, and what is asked and told over it in both directions.
---
--- Neovim's own JSON-RPC client does the framing. It does not know sockets, ports or clients' wishes; what each
--- request means is in the other files.
local say = require("ide_bridge.say")

local M = {}

M.METHOD_NOT_FOUND = -32601

local LINK = 1
local FEATURES = { "selection", "diagnostics", "diff", "focus", "dirty" }
local INTERNAL_ERROR = -32603
local LAST_WORDS = 300 -- ms for what was told just before the end

---@class ide_bridge.Line  one run of `ide-bridge attach`
---@field rpc table     Neovim's client
---@field log string    the file with what the process has to say
---@field ready boolean whether the bridge has welcomed us

local line ---@type ide_bridge.Line?
local waiting = {} ---@type fun()[]

-- -- being told and asked --------------------------------------------------------------------------------------

local function done(action)
  action()
  return vim.empty_dict()
end

local requests = {
  openFiles = function() return require("ide_bridge.files").open() end,
  currentFile = function() return require("ide_bridge.files").current() end,
  selection = function() return require("ide_bridge.selection").current() end,
  diagnostics = function(params) return require("ide_bridge.diagnostics").of(params.path) end,
  openFile = function(params)
    return done(function() require("ide_bridge.visit").visit(params) end)
  end,
  readBuffer = function(params) return require("ide_bridge.files").read(params.path) end,
  saveFile = function(params) return { saved = require("ide_bridge.files").save(params.path) } end,
  closeFile = function(params) return { closed = require("ide_bridge.files").close(params.path) } end,
  showDiff = function(params)
    return done(function() require("ide_bridge.diff").show(params) end)
  end,
  closeDiff = function(params)
    return done(function() require("ide_bridge.diff").close(params.diff) end)
  end,
}

local notifications = {
  fileChanged = function(params) require("ide_bridge.files").reload(params.path) end,
  clientsChanged = function(params) require("ide_bridge.status").clients_changed(params.clients) end,
  sessionEvent = function(params) require("ide_bridge.sessions").happened(params) end,
  approvalAsked = function(params) require("ide_bridge.approvals").asked(params) end,
  approvalClosed = function(params) require("ide_bridge.approvals").closed(params) end,
  message = function(params)
    local tell = { error = say.error, warning = say.warning }
    (tell[params.level] or say.info)(params.text)
  end,
}

local function answer(method, params)
  local verb = requests[method]
  if not verb then
    return nil, { code = M.METHOD_NOT_FOUND, message = ("Neovim does not know %s"):format(method) }
  end
  local fine, result = pcall(verb, params or {})
  if not fine then
    return nil, { code = INTERNAL_ERROR, message = say.sentence(result) }
  end
  return result == nil and vim.NIL or result
end

local function told(method, params)
  local verb = notifications[method]
  local fine, problem = pcall(verb or function() end, params or {})
  if not fine then
    say.error(say.sentence(problem))
  end
end

-- -- the process -----------------------------------------------------------------------------------------------

-- Neovim's client throws stderr into its own log; we want to read it.
local function with_log(argv, log)
  if vim.fn.executable("sh") == 0 then
    return argv
  end
  return vim.list_extend({ "sh", "-c", 'exec "$@" 2>"$0"', log }, argv)
end

local function launch(argv, env, dispatchers)
  local rpc = require("vim.lsp.rpc")
  if vim.fn.has("nvim-0.10") == 1 then
    return rpc.start(argv, dispatchers, { env = env })
  end
  return rpc.start(argv[1], vim.list_slice(argv, 2), dispatchers, { env = env })
end

local function terminate(client)
  if client.terminate then
    client.terminate()
  elseif not client.handle:is_closing() then
    client.handle:kill(15) -- Neovim 0.7
  end
end

local function last_logged(log)
  local last
  local file = io.open(log)
  for text in file and file:lines() or function() end do
    last = text:find("%S") and text or last
  end
  if file then
    file:close()
  end
  return last
end

local function gone()
  local was_ready = line and line.ready
  line, waiting = nil, {}
  if was_ready then
    require("ide_bridge.events").stop()
    require("ide_bridge.diff").close_all()
    require("ide_bridge.selection").reset()
    require("ide_bridge.sessions").detached()
    require("ide_bridge.approvals").reset()
    require("ide_bridge.status").ended()
  end
end

-- A bridge that was stopped on purpose ends the process with 0; a crash of it is repaired behind our back.
local function ended(ending, code)
  if line ~= ending then
    return
  end
  gone()
  if code == 0 then
    say.info("the bridge was stopped")
  else
    say.error(last_logged(ending.log) or ("ide-bridge attach ended with %d"):format(code))
  end
end

local function welcomed(problem, result)
  if problem then
    local ending = line
    gone()
    terminate(ending.rpc)
    say.error(problem.message)
    return
  end
  line.ready = true
  require("ide_bridge.status").began(result)
  require("ide_bridge.events").start()
  local actions = waiting
  waiting = {}
  for _, action in ipairs(actions) do
    action()
  end
end

local function greeting(folders)
  local version = vim.version()
  return {
    link = LINK,
    editor = "Neovim",
    version = ("%d.%d.%d"):format(version.major, version.minor, version.patch),
    features = FEATURES,
    folders = folders,
    pid = vim.fn.getpid(),
  }
end

---@param program ide_bridge.Program
---@param folders string[]
local function attach(program, folders)
  local starting = { log = vim.fn.tempname(), ready = false }
  local argv = vim.list_extend(vim.list_extend({}, program.argv), { "attach" })
  local started, client = pcall(launch, with_log(vim.list_extend(argv, folders), starting.log), program.env, {
    server_request = answer,
    notification = told,
    on_exit = function(code) vim.schedule(function() ended(starting, code) end) end,
  })
  if not started or not client then
    say.error(("%s cannot be started; :checkhealth ide_bridge tells more"):format(program.argv[1]))
    return
  end
  starting.rpc = client
  line = starting
  client.request("hello", greeting(folders), function(problem, result)
    if line == starting then
      welcomed(problem, result)
    end
  end)
end

-- -- starting and stopping -------------------------------------------------------------------------------------

---@return boolean
function M.runs()
  return line ~= nil
end

---@return boolean
function M.ready()
  return line ~= nil and line.ready
end

---@param folders string[]  the working folder when there are none
function M.start(folders)
  if line then
    return
  end
  local program = require("ide_bridge.command").find()
  if #program.argv == 0 then
    say.error(program.found)
    return
  end
  local named = #folders > 0 and folders or { vim.fn.getcwd() }
  attach(program, vim.tbl_map(function(folder)
    local full = vim.fn.fnamemodify(folder, ":p"):gsub("(.)/$", "%1")
    return require("ide_bridge.buffers").real(full)
  end, named))
end

-- What was told before has been heard when this is answered.
local function when_heard(client, action)
  client.request("status", vim.empty_dict(), action)
end

--- Detach from the bridge, which goes on. Open diffs are offered to the next editor.
function M.stop()
  if not line then
    say.info("does not run")
    return
  end
  local client = line.rpc
  gone()
  local over = false
  local function finish()
    if not over then
      over = true
      terminate(client)
    end
  end
  when_heard(client, finish)
  vim.defer_fn(finish, LAST_WORDS)
end

--- Neovim quits: open diffs are rejected, and that must have left before the process is ended.
function M.leave()
  if not M.ready() then
    return
  end
  local client = line.rpc
  if require("ide_bridge.diff").reject_all() > 0 then
    local heard = false
    when_heard(client, function() heard = true end)
    vim.wait(LAST_WORDS, function() return heard end, 5)
  end
  line = nil
  terminate(client)
end

--- Do something once the bridge has answered, which starts if it has to.
---@param action fun()
function M.when_ready(action)
  if M.ready() then
    action()
    return
  end
  M.start({})
  if line then
    table.insert(waiting, action)
  end
end

-- -- telling and asking ----------------------------------------------------------------------------------------

---@param method string
---@param params table
function M.notify(method, params)
  if M.ready() then
    line.rpc.notify(method, params)
  end
end

--- Ask the bridge; a problem is told to the user, unless somebody else deals with it.
---@param method string
---@param params table
---@param callback fun(result: any)
---@param refused fun(problem: { code: integer, message: string })?
function M.request(method, params, callback, refused)
  line.rpc.request(method, next(params) and params or vim.empty_dict(), function(problem, result)
    if not problem then
      callback(result)
    elseif refused then
      refused(problem)
    else
      say.error(problem.message)
    end
  end)
end

return M
