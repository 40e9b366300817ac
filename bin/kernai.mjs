#!/usr/bin/env node
// Runs the built command line, or the sources in a clone that was not built.
import { existsSync } from "node:fs"
import * as module from "node:module"

const [major, minor] = process.versions.node.split(".").map(Number)
if (major < 22 || (major === 22 && minor < 19)) {
  console.error(
    `kernai needs Node.js 22.19 or later, this is ${process.versions.node}; in a clone, npm start brings its own`
  )
  process.exit(2)
}

// Compiled code is kept in the system's folder for temporary files: every start but the first is much faster.
module.enableCompileCache?.()

const built = new URL("../dist/cli/main.js", import.meta.url)
const source = new URL("../src/cli/main.ts", import.meta.url)
const isBuilt = existsSync(built)

// Skill files of a clone import `kernai` as users do, which means the sources that run here.
if (!isBuilt) {
  module.registerHooks?.({
    resolve: (name, context, next) => next(name, { ...context, conditions: [...context.conditions, "kernai-source"] })
  })
}
await import(isBuilt ? built.href : source.href)
