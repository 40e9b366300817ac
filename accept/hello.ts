/**
 * Runs the first example, and prints the lines of the functions that it enters, by file: those that run while modules
 * are loaded, too.
 */
import { Span } from "./coverage.ts"

const span = new Span()
const { log } = console
console.log = () => {}
await import("../examples/01-hello.ts")
span.end()
log(JSON.stringify(span.entered))
