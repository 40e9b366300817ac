/** What examples log on a busy machine: that they wait for a server, or that the test clock did not wait for them. */
const late = /^\[[\d:.]+\] (?:INFO .*waiting for MCP server|WARN .*woken by the test clock)/

/** Returns whether an example logs a line only on a busy machine. */
export const isLate = (line: string): boolean => late.test(line)
