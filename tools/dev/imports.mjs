/**
 * A setup file of vitest that makes the imports of a test process cheap.
 *
 * A test process imports some 700 modules under 7,000 names. For each name, Node looks at the disk and vitest sends a
 * message to its main process, which only its watch mode needs. Here a path between two modules of one package
 * resolves without either, and the name of a package resolves once.
 */
import * as module from "node:module"

/** @type {Map<string, module.ResolveFnOutput>} */
const packages = new Map()

/** The format of a module that is imported by path; undefined where its name does not tell. */
const formatOf = (specifier, parentURL) => {
  if (parentURL.includes("/node_modules/")) {
    const isEffect = /\/node_modules\/(@effect\/[^/]+|effect)\/dist\//.test(parentURL)
    return isEffect && specifier.endsWith(".js") ? "module" : undefined
  }
  return specifier.endsWith(".ts") ? "module-typescript" : undefined
}

const resolve = (specifier, context, next) => {
  const { conditions, parentURL } = context
  if (parentURL === undefined || !conditions.includes("import")) return next(specifier, context)
  if (/^\.\.?\//.test(specifier)) {
    const format = formatOf(specifier, parentURL)
    if (format === undefined) return next(specifier, context)
    return { url: new URL(specifier, parentURL).href, format, shortCircuit: true }
  }
  if (/^(node:|effect\b|@effect\/|kernai\b)/.test(specifier)) {
    const known = packages.get(specifier)
    if (known !== undefined) return known
    const found = { ...next(specifier, context), shortCircuit: true }
    packages.set(specifier, found)
    return found
  }
  // Vitest imports a test file under a new name each time, so Node would never find it among what it compiled.
  const found = next(specifier, context)
  return { ...found, url: found.url.replace(/\?vitest=\d+$/, "") }
}

// Vitest imports this file before each test file: only the first time under a new name, for the hook removes that.
const isFirst = import.meta.url.includes("?vitest=")
if (isFirst && process.env.VITEST_MODE !== "WATCH") module.registerHooks({ resolve })
