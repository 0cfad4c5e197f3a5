-- lua5.4 docs/gitops/health_test.lua (5.1 to 5.4 will do), from the root of the repository. Argo CD's own interpreter speaks Lua 5.1.

local script = arg[0]:gsub("health_test%.lua$", "health.lua")
local file = assert(io.open(script))
local text = file:read("*a")
file:close()

local function health(object)
  obj = object
  return assert((loadstring or load)(text))()
end

local function object(conditions, changes)
  local made = {
    metadata = { generation = 2 },
    spec = { rollout = { paused = false } },
    status = { observedGeneration = 2, conditions = {} },
  }
  for kind, status in pairs(conditions) do
    table.insert(made.status.conditions, { type = kind, status = status, message = kind .. " says so" })
  end
  if changes ~= nil then
    changes(made)
  end
  return made
end

local cases = {
  { "no status yet", object({}, function(o) o.status = nil end), "Progressing", "the operator has not looked at it yet" },
  { "no conditions yet", object({}, function(o) o.status.conditions = nil end), "Progressing", "" },
  { "ready", object({ Ready = "True", Progressing = "False", Degraded = "False", Conflict = "False" }), "Healthy", "Ready says so" },
  { "ready, of an earlier generation", object({ Ready = "True" }, function(o) o.metadata.generation = 3 end), "Progressing", "the operator has not looked at it yet" },
  { "on its way", object({ Ready = "False", Progressing = "True", Degraded = "False", Conflict = "False" }), "Progressing", "Progressing says so" },
  { "stopped", object({ Ready = "False", Progressing = "False", Degraded = "False", Conflict = "False" }), "Degraded", "Ready says so" },
  { "conflict", object({ Ready = "False", Conflict = "True", Degraded = "False" }), "Degraded", "Conflict says so" },
  { "degraded", object({ Ready = "False", Conflict = "False", Degraded = "True" }), "Degraded", "Degraded says so" },
  {
    "paused",
    object({ Ready = "False", Progressing = "False", AgentsReady = "False" }, function(o) o.spec.rollout.paused = true end),
    "Suspended",
    "AgentsReady says so",
  },
  {
    "going",
    object({ Ready = "False", Progressing = "True" }, function(o) o.metadata.deletionTimestamp = "2026-01-31T00:00:00Z" end),
    "Progressing",
    "Progressing says so",
  },
}

for _, case in ipairs(cases) do
  local name, made, status, message = case[1], case[2], case[3], case[4]
  local found = health(made)
  assert(found.status == status, name .. ": " .. tostring(found.status))
  assert(found.message == message, name .. ": " .. tostring(found.message))
end
print(#cases .. " cases are as they should be")
