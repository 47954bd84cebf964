--- What the user has chosen in a file browser: netrw, nvim-tree, neo-tree or oil.
---
--- It does not know what the files are chosen for.
local M = {}

local api = vim.api

---@class ide_bridge.Explorer
---@field marked (fun(): string[])?         what the user has marked
---@field here fun(number: integer): string? the file on a line, which has the cursor

-- -- netrw -----------------------------------------------------------------------------------------------------

local TREE = 3
local netrw = {}

---@return string[]
function netrw.marked()
  local found = vim.fn["netrw#Expose"]("netrwmarkfilelist")
  return type(found) == "table" and found or {}
end

-- How deep a line of the tree is, and what it says: "| | name/".
local function tree_line(number)
  local bars, name = vim.fn.getline(number):match("^([| │]*)(.*)$")
  return select(2, bars:gsub("%S[^%s]* ?", "")), name
end

-- The folder that a line of the tree is in: its ancestors are above it, each less deep than the one before.
local function tree_folder(number)
  local depth = tree_line(number)
  local names = {}
  for above = number - 1, vim.w.netrw_bannercnt or 1, -1 do
    local other, name = tree_line(above)
    if depth <= 1 then
      break
    elseif other < depth then
      table.insert(names, 1, (name:gsub("/$", "")))
      depth = other
    end
  end
  local top = vim.w.netrw_treetop:gsub("/$", "")
  return table.concat(vim.list_extend({ top }, names), "/")
end

function netrw.here(number)
  if number < (vim.w.netrw_bannercnt or 1) then
    return nil
  end
  local name = vim.fn["netrw#Call"]("NetrwGetWord")
  local folder = vim.w.netrw_liststyle == TREE and tree_folder(number) or vim.b.netrw_curdir
  return name:sub(1, 1) == "/" and name or folder:gsub("/$", "") .. "/" .. name
end

-- -- plug-ins --------------------------------------------------------------------------------------------------

local nvim_tree = {}

function nvim_tree.marked()
  return vim.tbl_map(function(node) return node.absolute_path end, require("nvim-tree.api").marks.list())
end

function nvim_tree.here()
  local node = require("nvim-tree.api").tree.get_node_under_cursor()
  return node and node.absolute_path
end

local neo_tree = {}

function neo_tree.here(number)
  local state = require("neo-tree.sources.manager").get_state(vim.b.neo_tree_source or "filesystem")
  local node = state.tree:get_node(number)
  return node and (node.path or node:get_id())
end

local oil = {}

function oil.here(number)
  local entry = require("oil").get_entry_on_line(0, number)
  local folder = require("oil").get_current_dir()
  return entry and folder and folder .. entry.name
end

---@type table<string, ide_bridge.Explorer>  by file type
local EXPLORERS = { netrw = netrw, NvimTree = nvim_tree, ["neo-tree"] = neo_tree, oil = oil }

-- -- asking them -----------------------------------------------------------------------------------------------

-- They tell what is under the cursor, so it goes from line to line.
local function on_lines(explorer, first, last)
  local view = vim.fn.winsaveview()
  local paths = {}
  for number = first, last do
    api.nvim_win_set_cursor(0, { number, 0 })
    local told, path = pcall(explorer.here, number)
    if told and path then
      table.insert(paths, path)
    end
  end
  vim.fn.winrestview(view)
  return paths
end

--- The files of a range, else those that are marked, else the one under the cursor; none outside a file browser.
---@param ranged boolean
---@param first integer
---@param last integer
---@return string[]?
function M.chosen(ranged, first, last)
  local explorer = EXPLORERS[vim.bo.filetype]
  if not explorer then
    return nil
  end
  local told, marked = pcall(explorer.marked or function() return {} end)
  if not ranged and told and #marked > 0 then
    return marked
  end
  local paths = on_lines(explorer, first, last)
  if #paths == 0 then
    require("ide_bridge.say").error("there is no file here")
  end
  return paths
end

return M
