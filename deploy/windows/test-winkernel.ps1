<#
.SYNOPSIS
Tests kpng's Windows kernel mode on this node, and writes one report.

.DESCRIPTION
Runs `kpng conformance winkernel` step by step: what HNS has (probe), whether it holds the load balancers that kpng makes (sync), whether
they pass traffic (traffic). With -RestartHns also whether kpng repairs what a restart of HNS loses. At the end it removes what the steps
made (clean), and compares what HNS has with what it had before.

Services and pods of the node are not touched. Run it as an administrator, on a node that does nothing important.

.EXAMPLE
.\test-winkernel.ps1 -NetworkName cbr0

.EXAMPLE
.\test-winkernel.ps1 -NetworkName vxlan0 -SourceVip 10.244.1.2 -Pods 10.244.1.5,10.244.1.6 -RestartHns
#>
[CmdletBinding(SupportsShouldProcess)]
param(
  # kpng-win-x64.exe of a release.
  [string] $Kpng = 'C:\k\kpng\kpng.exe',
  # One that `hnsdiag list networks` shows.
  [Parameter(Mandatory)] [string] $NetworkName,
  # For an overlay network: the source address that pods see.
  [string] $SourceVip = '',
  [string] $NodeIp = '',
  # Two free addresses of the network. Default: HNS chooses.
  [string[]] $PodIps = @(),
  # Two pods on this node that run agnhost netexec. Default: servers in the kpng process.
  [string[]] $Pods = @(),
  # Restarts HNS after the first sync. Traffic of the node's pods may stop for seconds.
  [switch] $RestartHns,
  [string] $Report = 'kpng-winkernel.json'
)

$ErrorActionPreference = 'Stop'
[Console]::OutputEncoding = [System.Text.Encoding]::UTF8

if (-not (Test-Path -LiteralPath $Kpng)) { throw "$Kpng is not there. Give the right path with -Kpng." }

$common = @('--network-name', $NetworkName, '-o', 'json')
if ($SourceVip -ne '') { $common += @('--source-vip', $SourceVip) }
if ($NodeIp -ne '') { $common += @('--node-ip', $NodeIp) }
if ($PodIps.Count -gt 0) { $common += @('--pod-ips', ($PodIps -join ',')) }
if ($Pods.Count -gt 0) { $common += @('--pods', ($Pods -join ',')) }

$probeWords = @('conformance', 'winkernel', 'probe')
$syncWords = @('conformance', 'winkernel', 'sync')
$trafficWords = @('conformance', 'winkernel', 'traffic')
$cleanWords = @('conformance', 'winkernel', 'clean')

# A step that fails is part of the report: the next one runs all the same.
function Invoke-Step([string[]] $Words) {
  $log = [System.IO.Path]::GetTempFileName()
  $before = $ErrorActionPreference
  # Windows PowerShell takes each line on standard error for an error.
  $ErrorActionPreference = 'Continue'
  $text = (& $Kpng @Words @common 2> $log) -join "`n"
  $code = $LASTEXITCODE
  $ErrorActionPreference = $before
  $said = (Get-Content -LiteralPath $log) -join "`n"
  Remove-Item -LiteralPath $log
  $parsed = try { ConvertFrom-Json $text } catch { 'The step ended without a report.' }
  [ordered]@{ command = ($Words -join ' '); exitCode = $code; report = $parsed; log = $said }
}

# What HNS itself says, by another way than kpng's.
function Get-HnsText {
  if (Get-Command hnsdiag.exe -ErrorAction SilentlyContinue) { (& hnsdiag.exe list all -d) -join "`n" } else { 'hnsdiag is not installed.' }
}

if (-not $PSCmdlet.ShouldProcess($env:COMPUTERNAME, 'make and remove test load balancers in HNS')) { return }

$windows = Get-ItemProperty 'HKLM:\SOFTWARE\Microsoft\Windows NT\CurrentVersion'
$before = Get-HnsText
$steps = @(Invoke-Step $probeWords)
$steps += Invoke-Step $syncWords
$held = Get-HnsText
if ($RestartHns) {
  Restart-Service -Name hns -Force
  $steps += Invoke-Step $syncWords
}
$steps += Invoke-Step $trafficWords
$steps += Invoke-Step $cleanWords
$after = Get-HnsText

$result = [ordered]@{
  windows = "$($windows.ProductName) $($windows.CurrentBuild).$($windows.UBR)"
  kpng = (& $Kpng version) -join ''
  passed = @($steps | Where-Object { $_.exitCode -ne 0 }).Count -eq 0
  steps = $steps
  hnsBefore = $before
  hnsAfterSync = $held
  hnsAtTheEnd = $after
}
ConvertTo-Json -Depth 20 $result | Set-Content -LiteralPath $Report -Encoding UTF8

foreach ($step in $steps) {
  Write-Output "$($step.command): exit code $($step.exitCode)"
  foreach ($check in $step.report.checks) {
    if ($check.verdict -eq 'failed') { Write-Output "  failed: $($check.name): $($check.sentence)" }
  }
  if ($step.log -ne '') { Write-Output "  $($step.log)" }
}
Write-Output "The report is in $Report."
if (-not $result.passed) { exit 1 }
