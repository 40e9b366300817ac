import { describe, it } from "@effect/vitest"
import { WorkspaceSuite } from "kernai/testing"
import { Workspace } from "kernai/workspace"
import { opened } from "./folders.ts"

describe("a workspace in a folder", () => {
  for (const { name, run } of WorkspaceSuite.checks(
    opened((root) => Workspace.layerLocal({ root })),
    {
      commands: true,
      processes: true
    }
  )) {
    it.live(name, () => run)
  }
})
