import { describe, it } from "@effect/vitest"
import { WorkspaceSuite } from "kernai/testing"
import { Workspace } from "kernai/workspace"
import { has, opened } from "./folders.ts"

const sandboxes = has("bwrap", "--unshare-all", "--ro-bind", "/", "/", "true")

describe.skipIf(!sandboxes)("a workspace with sandboxed commands", () => {
  for (const { name, run } of WorkspaceSuite.checks(
    opened((root) => Workspace.layerSandboxed({ root })),
    {
      commands: true,
      processes: true
    }
  )) {
    it.live(name, () => run)
  }
})
