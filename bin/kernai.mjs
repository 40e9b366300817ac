#!/usr/bin/env node
// Runs the built command line, or the sources in a clone that was not built.
import { existsSync } from "node:fs"

const built = new URL("../dist/cli/main.js", import.meta.url)
const source = new URL("../src/cli/main.ts", import.meta.url)
await import(existsSync(built) ? built.href : source.href)
