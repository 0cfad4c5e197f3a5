-- The health of an IngressSourcePreserve, for Argo CD: resource.customizations.health.sourcepreserve.io_IngressSourcePreserve
-- `obj` is the object; what is returned has a status and a message.

local function condition(kind)
  if obj.status == nil or obj.status.conditions == nil then
    return nil
  end
  for _, found in ipairs(obj.status.conditions) do
    if found.type == kind then
      return found
    end
  end
  return nil
end

local function holds(kind)
  local found = condition(kind)
  return found ~= nil and found.status == "True"
end

local function message(kind)
  local found = condition(kind)
  if found == nil or found.message == nil then
    return ""
  end
  return found.message
end

if obj.metadata.deletionTimestamp ~= nil then
  return { status = "Progressing", message = message("Progressing") }
end

-- What the operator says about an earlier generation is not about this one.
if obj.status == nil or obj.status.observedGeneration ~= obj.metadata.generation then
  return { status = "Progressing", message = "the operator has not looked at it yet" }
end

if holds("Conflict") then
  return { status = "Degraded", message = message("Conflict") }
end

if holds("Degraded") then
  return { status = "Degraded", message = message("Degraded") }
end

if holds("Ready") then
  return { status = "Healthy", message = message("Ready") }
end

if obj.spec ~= nil and obj.spec.rollout ~= nil and obj.spec.rollout.paused == true then
  return { status = "Suspended", message = message("AgentsReady") }
end

-- Stopped: only somebody else can help.
if condition("Progressing") ~= nil and not holds("Progressing") then
  return { status = "Degraded", message = message("Ready") }
end

return { status = "Progressing", message = message("Progressing") }
