/**
 * A tool of a server as a skill.
 */

import * as Effect from "effect/Effect"
import { jsonObject } from "../../internal/base/json.ts"
import type { Limits } from "../../Limits.ts"
import * as Skill from "../../Skill.ts"
import * as Call from "./callTool.ts"
import * as Definition from "./definition.ts"
import type { Station, StationTool } from "./mcpServer.ts"

/** Makes the skill of a tool under its local name; on the wire it keeps its own. */
export const make = (station: Station, tool: StationTool, name: string, limits: Limits): Skill.AnySkill => {
  const hints = tool.tool.annotations
  const title = hints?.title ?? tool.tool.title
  return Skill.dynamic(name, {
    description: Definition.describe(tool.tool, limits.descriptionLength),
    inputSchema: jsonObject(Definition.readable(tool.parts["inputSchema"] ?? {}, limits.descriptionLength)),
    source: "mcp",
    effects: Call.effectsOf(station, tool),
    annotations: {
      readonly: hints?.readOnlyHint ?? false,
      destructive: hints?.destructiveHint ?? true,
      idempotent: hints?.idempotentHint ?? false,
      openWorld: hints?.openWorldHint ?? true,
      ...(title === undefined ? {} : { title: Definition.line(title, limits.descriptionLength) })
    },
    timeout: station.timeout(limits),
    execute: (input) =>
      Effect.flatMap(Call.callTool(station, tool, input), (answer) => Call.succeeded(station.name, answer))
  })
}
