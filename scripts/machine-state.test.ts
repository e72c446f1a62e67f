import { spawnSync } from 'node:child_process'
import { whySkipped } from '@kpng/linux/testing'
import { expect, test } from 'vitest'

// In a network namespace and mounts of its own, so that this machine stays as it is.

test.skipIf(whySkipped('what tests leave on a machine', 'nft', 'iptables-legacy') !== undefined)(
  'what a test leaves behind is found: a sysctl, a link, an address, rules of each kind, a mount',
  () => {
    const script = `
      import { execSync } from 'node:child_process'
      import { differences, machineState } from '${new URL('machine-state.js', import.meta.url)}'
      const run = (command) => execSync(command, { stdio: 'inherit' })
      run('mount -t tmpfs none /run; echo 0 > /proc/sys/net/ipv4/conf/all/route_localnet; ip link set lo up; iptables-legacy -t nat -A OUTPUT -j ACCEPT')
      const before = machineState()
      if (differences(before, machineState()).length > 0) throw new Error('it changes by itself')
      run('echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet')
      run('ip link add left type veth peer name right; ip address add 192.0.2.7/32 dev lo')
      run('nft add table ip left; iptables-legacy -t nat -A OUTPUT -j RETURN; mount -t tmpfs none /mnt')
      for (const line of differences(before, machineState())) console.log(line)
      run('nft delete table ip left; umount /mnt')
      console.log(differences(before, machineState()).filter((line) => /nftables|mount/.test(line)).length)`
    const args = ['--net', '--mount', process.execPath, '--input-type=module', '-e', script]
    const { stdout, stderr } = spawnSync('unshare', args, { encoding: 'utf8' })
    expect(stderr).toBe('')
    const lines = stdout.split('\n')
    expect(lines).toContain('~ sysctl /proc/sys/net/ipv4/conf/all/route_localnet: 0 → 1')
    expect(lines).toContain('+ link left@right')
    expect(lines).toContain('+ address lo inet 192.0.2.7/32')
    expect(lines).toContain('+ mount /mnt')
    expect(stdout).toMatch(/\+ nftables line \d+ table ip left/)
    expect(stdout).toMatch(/[+~] iptables-legacy-save line \d+/)
    expect(lines.at(-2)).toBe('0')
  },
)
