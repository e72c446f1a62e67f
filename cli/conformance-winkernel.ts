import { type Context, type Flags, given, listFlag, textFlag } from './context.js'

/** Tests the Windows kernel mode on this node. The exit code says whether every check passed. */
export async function testWinkernel(step: string, flags: Flags, { log }: Context): Promise<void> {
  const { milliseconds } = await import('@kpng/client')
  const { clean, probe, reportText, sync, traffic } = await import('@kpng/backend-winkernel/conformance')
  const ipsOf = (name: string) => (textFlag(flags, name) === undefined ? undefined : listFlag(flags, name))
  const run = { probe, sync, traffic, clean }[step as 'probe']
  const report = await run({
    ...given('networkName', textFlag(flags, 'networkName')),
    ...given('sourceVip', textFlag(flags, 'sourceVip')),
    ...given('nodeIp', textFlag(flags, 'nodeIp')),
    ...given('podIps', ipsOf('podIps')),
    ...given('pods', ipsOf('pods')),
    enableDsr: flags.enableDsr === true,
    settleMs: milliseconds('--wait', textFlag(flags, 'wait') ?? '20s'),
    log,
  })
  process.stdout.write(flags.output === 'json' ? `${JSON.stringify(report, undefined, 2)}\n` : reportText(report))
  // For scripts: the question was answered, and something does not work.
  if (!report.passed) process.exitCode = 1
}
