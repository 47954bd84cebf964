--- The two sides of a diff: a tab with the file as it is on the left, and the proposed text on the right.
---
--- It is Neovim's own diff mode. It never touches a window that is not its own, and does not know what is decided.
local buffers = require("ide_bridge.buffers")
local proposal = require("ide_bridge.proposal")
local say = require("ide_bridge.say")

local M = {}

local api = vim.api
local INHERITED = {
  "winfixheight", "winfixwidth", "number", "relativenumber", "list", "spell", "signcolumn", "cursorline", "wrap",
  "winhighlight",
}

local function in_window_of(buffer, command)
  api.nvim_win_call(vim.fn.win_findbuf(buffer)[1], function() vim.cmd(command) end)
end

-- -- making it -------------------------------------------------------------------------------------------------

---@param diff ide_bridge.Diff
---@param side "current"|"proposed"
---@return integer
local function make(diff, side)
  local buffer = api.nvim_create_buf(false, false)
  local name = vim.fn.fnamemodify(diff.path, ":.")
  api.nvim_buf_set_name(buffer, ("ide-bridge://%s/%d/%s"):format(side, diff.id, name))
  vim.bo[buffer].swapfile = false
  vim.bo[buffer].undofile = false
  vim.bo[buffer].bufhidden = "unload" -- what the user changes there is protected, also with 'hidden'
  vim.b[buffer].ide_bridge_diff = diff.id
  return buffer
end

-- As Neovim would read it, so that encoding and line ends are not part of the difference.
local function read(buffer, path)
  api.nvim_buf_call(buffer, function()
    -- Not vim.cmd, which takes a line break in a name for the end of a command.
    api.nvim_command("silent noautocmd keepalt read ++edit " .. vim.fn.fnameescape(path))
    vim.cmd("silent 1delete _")
  end)
end

local function detect_type(buffer, path)
  api.nvim_buf_call(buffer, function()
    pcall(api.nvim_command, "silent doautocmd <nomodeline> filetypedetect BufRead " .. vim.fn.fnameescape(path))
  end)
end

---@param diff ide_bridge.Diff
local function fill_left(diff)
  local own = buffers.loaded(diff.path)
  if own then
    api.nvim_buf_set_lines(diff.left, 0, -1, false, api.nvim_buf_get_lines(own, 0, -1, false))
  elseif vim.fn.filereadable(diff.path) == 1 then
    read(diff.left, diff.path)
  end
  vim.bo[diff.left].buftype = "nofile"
  if own then
    vim.bo[diff.left].filetype = vim.bo[own].filetype
  else
    detect_type(diff.left, diff.path)
  end
  vim.bo[diff.left].modified = false
  vim.bo[diff.left].modifiable = false
  vim.bo[diff.left].readonly = true
end

---@param diff ide_bridge.Diff
local function fill_right(diff)
  proposal.fill(diff.right, diff.contents)
  vim.bo[diff.right].buftype = "acwrite"
  vim.bo[diff.right].filetype = vim.bo[diff.left].filetype
  vim.bo[diff.right].modifiable = true
  vim.bo[diff.right].readonly = false
end

-- A split takes over how its window looks; a terminal or a file browser is no model.
local function as_usual()
  for _, name in ipairs(INHERITED) do
    vim.cmd(("setlocal %s<"):format(name))
  end
end

---@param diff ide_bridge.Diff
local function show(diff)
  diff.before = api.nvim_get_current_win()
  diff.typing = api.nvim_get_mode().mode == "t"
  vim.cmd("silent tab sbuffer " .. diff.left)
  as_usual()
  vim.cmd("silent rightbelow vertical sbuffer " .. diff.right)
  as_usual()
  diff.tab = api.nvim_get_current_tabpage()
  in_window_of(diff.left, "diffthis")
  in_window_of(diff.right, "diffthis")
  vim.cmd("normal! gg")
  if vim.fn.diff_hlID(1, 1) == 0 then
    vim.cmd("silent! normal! ]c")
  end
end

-- -- watching it -----------------------------------------------------------------------------------------------

---@param diff ide_bridge.Diff
---@param target string
local function write_copy(diff, target)
  if vim.fn.filereadable(target) == 1 and vim.v.cmdbang == 0 then
    say.error(("%s exists (add ! to override)"):format(target))
    return
  end
  local file, problem = io.open(target, "wb")
  if not file then
    say.error(problem)
    return
  end
  file:write(buffers.text(diff.right))
  file:close()
end

-- Whether this is done by an autocommand and not by the user; Neovim 0.7 cannot tell.
local function is_automatic()
  local _, depth = vim.fn.expand("<stack>"):gsub("Autocommands for", "")
  return depth > 1
end

-- What writes without the user, such as an autocommand that saves everything, or `:wall` from another tab, decides
-- nothing: as long as the buffer stays modified, Neovim knows that it was not written.
---@param diff ide_bridge.Diff
---@param deciders ide_bridge.Deciders
---@param target string
local function on_write(diff, deciders, target)
  if not target:find("^ide%-bridge://proposed/") then -- `:saveas` has renamed the buffer already
    write_copy(diff, target)
  elseif is_automatic() then
    return
  elseif api.nvim_get_current_tabpage() ~= diff.tab then
    local name = vim.fn.fnamemodify(diff.path, ":.")
    say.warning(("the diff of %s is not decided by writing everything: go to its tab"):format(name))
  elseif deciders.written(diff, vim.v.cmdbang == 1) then
    vim.bo[diff.right].modified = false
  else
    vim.bo[diff.right].bufhidden = "unload" -- so that `:wq` does not close what it could not write
  end
end

-- `:x` writes only what is modified, but means "keep" here; so the buffer says that it is while a command is
-- typed. `:q` asks nothing then, as the buffer may hide. What the user has really changed is protected as in any
-- buffer.
---@param diff ide_bridge.Diff
local function pretend(diff)
  local options = vim.bo[diff.right]
  if not options.modified then
    diff.pretends = api.nvim_buf_get_changedtick(diff.right)
    options.bufhidden = "hide"
    options.modified = true
  end
end

---@param diff ide_bridge.Diff
local function stop_pretending(diff)
  if diff.pretends and api.nvim_buf_is_loaded(diff.right) then
    vim.bo[diff.right].bufhidden = "unload"
    vim.bo[diff.right].modified = api.nvim_buf_get_changedtick(diff.right) ~= diff.pretends
  end
  diff.pretends = nil
end

-- One side may be gone because its window was closed, or because something else is shown in it.
---@param diff ide_bridge.Diff
---@param deciders ide_bridge.Deciders
local function look_after(diff, deciders)
  local right = api.nvim_buf_is_valid(diff.right) and #vim.fn.win_findbuf(diff.right) > 0
  local left = api.nvim_buf_is_valid(diff.left) and #vim.fn.win_findbuf(diff.left) > 0
  if not right or (not left and not vim.bo[diff.right].modified) then
    deciders.closed(diff)
  end
  diff.looked_at = nil
end

---@param diff ide_bridge.Diff
---@param deciders ide_bridge.Deciders
local function watch(diff, deciders)
  local group = api.nvim_create_augroup("ide_bridge_diff_" .. diff.id, {})
  local function on(event, buffer, callback)
    api.nvim_create_autocmd(event, {
      group = group,
      buffer = buffer,
      callback = function(happened) callback(happened) end, -- what returns true is deleted
    })
  end
  on("BufWriteCmd", diff.right, function(write) on_write(diff, deciders, write.match) end)
  on("CmdlineEnter", diff.right, function() pretend(diff) end)
  on("CmdlineLeave", diff.right, function()
    vim.schedule(function() stop_pretending(diff) end)
  end)
  vim.keymap.set("n", "ZZ", ":wq<CR>", { buffer = diff.right, silent = true, desc = "Keep the proposed change" })
  for _, buffer in ipairs({ diff.left, diff.right }) do
    on("BufWinLeave", buffer, function()
      diff.looked_at = diff.looked_at or api.nvim_get_current_tabpage() == diff.tab
      vim.schedule(function() look_after(diff, deciders) end)
    end)
  end
  on("ExitPre", nil, function() stop_pretending(diff) end) -- `:qall` need not be said twice
end

--- Show a diff in a tab of its own, and look at it.
---@param diff ide_bridge.Diff
---@param deciders ide_bridge.Deciders
function M.open(diff, deciders)
  diff.left, diff.right = make(diff, "current"), make(diff, "proposed")
  fill_left(diff)
  fill_right(diff)
  show(diff)
  watch(diff, deciders)
end

-- -- taking it away --------------------------------------------------------------------------------------------

local function come_back(diff)
  if not api.nvim_win_is_valid(diff.before) then
    return
  end
  api.nvim_set_current_win(diff.before)
  if diff.typing and vim.bo.buftype == "terminal" then
    vim.cmd("startinsert")
  end
end

--- Take a diff off the screen; who looked at it is back where he was.
---@param diff ide_bridge.Diff
function M.wipe(diff)
  if not diff.right then
    return
  end
  pcall(api.nvim_del_augroup_by_name, "ide_bridge_diff_" .. diff.id) -- gone when it was wiped before
  local looks = diff.looked_at or api.nvim_get_current_tabpage() == diff.tab
  for _, buffer in ipairs({ diff.right, diff.left }) do
    if api.nvim_buf_is_valid(buffer) then
      api.nvim_buf_delete(buffer, { force = true })
    end
  end
  if looks then
    come_back(diff)
  end
end

return M
