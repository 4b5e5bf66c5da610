// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// A contract with which tokens are staked: it notes who staked which number, and has no tokens itself. Real ones tell
/// of a wallet's stake in different ways; each of the kinds below has one of them.
abstract contract Staking {
    /// A change of what is staked, as the collections have it; the zero address stakes as `from` and unstakes as `to`.
    struct Move {
        address from;
        address to;
        uint256 id;
        uint256 amount;
    }

    string public name;
    address private immutable keeper;
    uint256[] private ids;
    mapping(uint256 => uint256) private places;
    mapping(uint256 => address) public stakerOf;
    mapping(address => uint256) internal count;
    mapping(address => uint64) internal since;

    event Staked(address indexed who, uint256 indexed id);
    event Unstaked(address indexed who, uint256 indexed id);

    constructor(string memory name_, address keeper_) {
        name = name_;
        keeper = keeper_;
    }

    function stake(uint256 id) external {
        _stake(msg.sender, id);
    }

    function unstake(uint256 id) external {
        require(stakerOf[id] == msg.sender, "Staking: not yours");
        _unstake(id);
    }

    /// Many moves in one transaction; for the keeper alone.
    function settle(Move[] calldata moves) external {
        require(msg.sender == keeper, "Staking: keeper only");
        for (uint256 i = 0; i < moves.length; i++) {
            if (moves[i].from != address(0)) _unstake(moves[i].id);
            if (moves[i].to != address(0)) _stake(moves[i].to, moves[i].id);
        }
    }

    /// Every staked number and who staked it.
    function stakes() external view returns (address[] memory who, uint256[] memory staked_) {
        who = new address[](ids.length);
        staked_ = ids;
        for (uint256 i = 0; i < ids.length; i++) who[i] = stakerOf[ids[i]];
    }

    function _stake(address who, uint256 id) private {
        require(stakerOf[id] == address(0), "Staking: staked already");
        stakerOf[id] = who;
        ids.push(id);
        places[id] = ids.length;
        if (count[who]++ == 0) since[who] = uint64(block.timestamp);
        emit Staked(who, id);
    }

    function _unstake(uint256 id) private {
        address who = stakerOf[id];
        uint256 last = ids[ids.length - 1];
        ids[places[id] - 1] = last;
        places[last] = places[id];
        ids.pop();
        delete places[id];
        delete stakerOf[id];
        count[who]--;
        emit Unstaked(who, id);
    }

    function _of(address who) internal view returns (uint256[] memory mine) {
        mine = new uint256[](count[who]);
        uint256 found = 0;
        for (uint256 i = 0; i < ids.length; i++) {
            if (stakerOf[ids[i]] == who) mine[found++] = ids[i];
        }
    }
}

contract StakingNumber is Staking {
    constructor(string memory name_, address keeper_) Staking(name_, keeper_) {}

    function staked(address who) external view returns (uint256) {
        return count[who];
    }
}

contract StakingList is Staking {
    constructor(string memory name_, address keeper_) Staking(name_, keeper_) {}

    function stakedTokens(address who) external view returns (uint256[] memory) {
        return _of(who);
    }
}

contract StakingStruct is Staking {
    struct Position {
        uint256 amount;
        uint64 since;
        bool active;
    }

    constructor(string memory name_, address keeper_) Staking(name_, keeper_) {}

    function positionOf(address who) external view returns (Position memory) {
        return Position(count[who], since[who], count[who] > 0);
    }
}

contract StakingConstant is Staking {
    /// The only pool that there is.
    uint256 public constant POOL = 5;

    constructor(string memory name_, address keeper_) Staking(name_, keeper_) {}

    function stakedOf(address who, uint256 pool) external view returns (uint256) {
        return pool == POOL ? count[who] : 0;
    }
}

contract StakingRevert is Staking {
    constructor(string memory name_, address keeper_) Staking(name_, keeper_) {}

    function staked(address) external pure returns (uint256) {
        revert("Staking: closed");
    }
}

contract StakingHuge is Staking {
    uint256 private constant LENGTH = 32_768;

    constructor(string memory name_, address keeper_) Staking(name_, keeper_) {}

    /// A list of a megabyte, whoever is asked about.
    function stakedTokens(address) external pure returns (uint256[] memory) {
        return new uint256[](LENGTH);
    }
}
